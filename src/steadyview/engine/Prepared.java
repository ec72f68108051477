import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeMap;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CoalesceExec;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.arrow.ArrowBatchStreamWriter;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CloseableIterator;
import org.apache.spark.unsafe.Platform;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.math.BigInt;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractPartialFunction;

/**
 * A statement that was planned once and runs with other rows each time; for engine/prepared.py.
 *
 * Claim: a run gives the rows that Spark would give for the same text over the same rows. The plan
 * is made over inputs whose rows nobody knows, so nothing in it can depend on them; a run copies the
 * whole of it, puts the rows in their places and prepares that, so that no two runs share a node:
 * Spark writes into nodes while it compiles them. Expressions are shared, and some remember what
 * they are at: so one run of a plan comes after the other. An input is one partition, and so is all
 * that is made of it: a run is one task.
 */
public class Prepared {
    private static final ClassTag ROW = ClassTag$.MODULE$.apply(InternalRow.class);
    private static final String ZONE = "UTC";
    private static final long BATCH = 10000L;
    /** Bytes that pass to Python at once. */
    private static final int PART = 8 << 20;
    /** Bytes of a result that go this way at most. */
    private static final long LARGEST = 64L << 20;
    /** In bytes: what Spark is to think of an input's size. All inputs are small. */
    private static final BigInt SMALL = BigInt.apply(1000000L);

    /** Plans of one JVM, whoever asked for them; the ones not used for the longest time go. */
    private static final int MOST = 300;

    private final LinkedHashMap kept = new LinkedHashMap(16, 0.75f, true);
    private long last;

    private SparkSession session;
    private StructType[] schemas;
    private RDD[] places;
    private SparkPlan plan;
    private StructType shown;

    /**
     * Plans the text over inputs of these names and columns; the number of the plan, 0 if the text
     * cannot run this way.
     */
    public long keep(SparkSession session, String sql, List names, List columns) {
        Prepared made = planned(session, sql, names, columns);
        synchronized (kept) {
            if (made == null) {
                return 0;
            }
            kept.put(Long.valueOf(++last), made);
            while (kept.size() > MOST) {
                kept.remove(kept.keySet().iterator().next());
            }
            return last;
        }
    }

    /** Plans that nobody runs any more. */
    public void forget(List numbers) {
        synchronized (kept) {
            for (int i = 0; i < numbers.size(); i++) {
                kept.remove(Long.valueOf(((Number) numbers.get(i)).longValue()));
            }
        }
    }

    /** What `run` of that plan gives; nothing at all if the plan is gone. */
    public List run(long number, byte[] inputs) {
        Prepared found;
        synchronized (kept) {
            found = (Prepared) kept.get(Long.valueOf(number));
        }
        return found == null ? new ArrayList() : found.run(inputs);
    }

    private Prepared planned(
            final SparkSession session, final String sql, final List names, final List columns) {
        final Prepared made = new Prepared();
        made.session = session;
        made.schemas = new StructType[names.size()];
        made.places = new RDD[names.size()];
        return (Prepared) session.withActive(new AbstractFunction0() {
            public Object apply() {
                try {
                    for (int i = 0; i < names.size(); i++) {
                        made.declare(i, (String) names.get(i), (String) columns.get(i));
                    }
                    return made.plan(sql) ? made : null;
                } finally {
                    for (int i = 0; i < names.size(); i++) {
                        session.catalog().dropTempView((String) names.get(i));
                    }
                }
            }
        });
    }

    private void declare(int number, String name, String columns) {
        schemas[number] = StructType.fromDDL(columns);
        places[number] = session.sparkContext().emptyRDD(ROW);
        Statistics small = new Statistics(
            SMALL, Option.empty(), new AttributeMap(new scala.collection.immutable.HashMap()), false);
        LogicalRDD leaf = new LogicalRDD(
            DataTypeUtils.toAttributes(schemas[number]), places[number], SinglePartition$.MODULE$,
            (Seq) Nil$.MODULE$, false, Option.empty(), session, Option.apply(small), Option.empty());
        Dataset$.MODULE$.ofRows(session, leaf).createOrReplaceTempView(name);
    }

    private boolean plan(String sql) {
        Dataset made = session.sql(sql);
        QueryExecution execution = made.queryExecution();
        // a subquery that is left has a plan of its own, which would keep its empty inputs
        if (!execution.optimizedPlan().subqueriesAll().isEmpty()) {
            return false;
        }
        plan = execution.sparkPlan();
        shown = made.schema();
        // an operator may keep a logical plan of its own, and inputs in it
        return placed(plan) == placed(execution.optimizedPlan());
    }

    private int placed(TreeNode tree) {
        int found = 0;
        Iterator leaves = tree.collectLeaves().iterator();
        while (leaves.hasNext()) {
            Object leaf = leaves.next();
            if (leaf instanceof RDDScanExec && place(((RDDScanExec) leaf).rdd()) >= 0
                    || leaf instanceof LogicalRDD && place(((LogicalRDD) leaf).rdd()) >= 0) {
                found++;
            }
        }
        return found;
    }

    private int place(RDD rdd) {
        return Arrays.asList((Object[]) places).indexOf(rdd);
    }

    /**
     * The rows of a run as a stream of Arrow, in parts; inputs come as such streams, each behind
     * its length. Null where they are too many bytes.
     */
    private synchronized List run(final byte[] inputs) {
        return (List) session.withActive(new AbstractFunction0() {
            public Object apply() {
                return SQLExecution$.MODULE$.withSQLConfPropagated(session, new AbstractFunction0() {
                    public Object apply() {
                        SparkPlan ready = QueryExecution.prepareExecutedPlan(session, over(inputs));
                        return arrow((Iterator) ready.executeCollectIterator()._2());
                    }
                });
            }
        });
    }

    /** The plan with the rows of a run in their places. */
    private SparkPlan over(byte[] inputs) {
        final RDD[] rows = new RDD[places.length];
        ByteBuffer left = ByteBuffer.wrap(inputs);
        for (int i = 0; i < rows.length; i++) {
            byte[] stream = new byte[left.getInt()];
            left.get(stream);
            rows[i] = session.sparkContext().parallelize(rows(stream, schemas[i]), 1, ROW);
        }
        return (SparkPlan) ((SparkPlan) plan.clone()).transformUp(new AbstractPartialFunction() {
            public boolean isDefinedAt(Object node) {
                return node instanceof RDDScanExec || node instanceof UnionExec;
            }

            public Object applyOrElse(Object node, Function1 otherwise) {
                if (node instanceof UnionExec) {
                    // its parts have one partition each
                    return new CoalesceExec(1, (SparkPlan) node);
                }
                return node instanceof RDDScanExec
                    ? filled((RDDScanExec) node, rows) : otherwise.apply(node);
            }
        });
    }

    private Object filled(RDDScanExec scan, RDD[] rows) {
        int place = place(scan.rdd());
        if (place < 0) {
            throw new IllegalStateException("an input of another statement");
        }
        return new RDDScanExec(
            scan.output(), rows[place], "rows", scan.outputPartitioning(), scan.outputOrdering(),
            scan.stream());
    }

    private static Seq rows(byte[] stream, StructType schema) {
        CloseableIterator read =
            (CloseableIterator) ArrowConverters$.MODULE$.fromIPCStream(stream)._1();
        try {
            UnsafeProjection row = (UnsafeProjection) UnsafeProjection$.MODULE$.create(schema);
            List found = new ArrayList();
            try {
                while (read.hasNext()) {
                    found.add(row.apply((InternalRow) read.next()).copy());
                }
            } finally {
                read.close();
            }
            return CollectionConverters.asScala(found).toSeq();
        } catch (Exception wrong) {
            Platform.throwException(wrong);
            return null;
        }
    }

    private List arrow(Iterator rows) {
        List found = new ArrayList();
        long size = 0;
        while (rows.hasNext()) {
            UnsafeRow row = (UnsafeRow) rows.next();
            found.add(row);
            size += row.getSizeInBytes();
            if (size > LARGEST) {
                return null;
            }
        }
        Iterator each = CollectionConverters.asScala(found.iterator());
        Iterator batches = ArrowConverters$.MODULE$.toBatchIterator(
            each, shown, BATCH, ZONE, true, false, null);
        try {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ArrowBatchStreamWriter writer =
                new ArrowBatchStreamWriter(shown, out, ZONE, true, false);
            writer.writeBatches(batches);
            writer.end();
            return parts(out.toByteArray());
        } catch (Exception wrong) {
            Platform.throwException(wrong);
            return null;
        }
    }

    private static List parts(byte[] whole) {
        List found = new ArrayList();
        for (int from = 0; from < whole.length; from += PART) {
            found.add(Arrays.copyOfRange(whole, from, Math.min(from + PART, whole.length)));
        }
        return found;
    }
}
