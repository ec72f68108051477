import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.Platform;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction0;

/**
 * Plans of Spark as JSON, for engine/plan_tree.py. Compiled by the Janino that Spark brings along.
 *
 * Claim: nothing that a plan holds escapes: a node is {"class": its class, "parts": all that it was
 * made of}; collections are arrays; texts, truth values and null are themselves; anything else is
 * {"other": its class}, with its parts where it is made of parts. A view that was resolved is its
 * name and whether it is temporary; what is behind it was judged when it was made.
 */
public class PlanTree {
    /** The text as an unresolved plan, read with the settings of this very session. */
    public static Object parsed(final SparkSession session, final String sql) {
        return session.withActive(new AbstractFunction0() {
            public Object apply() {
                try {
                    return session.sessionState().sqlParser().parsePlan(sql);
                } catch (Exception wrong) {
                    Platform.throwException(wrong);
                    return null;
                }
            }
        });
    }

    public static String json(Object plan) throws Exception {
        return new ObjectMapper().writeValueAsString(shown(plan));
    }

    /** Every function that the session knows, with the class that stands for it in a plan. */
    public static String functions(SparkSession session) throws Exception {
        Map found = new LinkedHashMap();
        add(session.sessionState().tableFunctionRegistry(), found);
        add(session.sessionState().functionRegistry(), found);
        return new ObjectMapper().writeValueAsString(found);
    }

    private static void add(FunctionRegistryBase registry, Map found) {
        Iterator names = registry.listFunction().iterator();
        while (names.hasNext()) {
            FunctionIdentifier name = (FunctionIdentifier) names.next();
            ExpressionInfo info = (ExpressionInfo) registry.lookupFunction(name).get();
            found.put(name.funcName(), info.getClassName());
        }
    }

    private static Object shown(Object value) {
        if (value == null || value instanceof String || value instanceof Boolean) {
            return value;
        }
        if (value instanceof View) {
            View view = (View) value;
            String name = view.desc().identifier().unquotedString();
            return node("class", value, Arrays.asList(new Object[] {name, view.isTempView()}));
        }
        if (value instanceof TreeNode) {
            return node("class", value, all(((TreeNode) value).productIterator()));
        }
        if (value instanceof Map) {
            return new ArrayList(((Map) value).keySet());
        }
        if (value instanceof DataType) {
            return node("other", value, new ArrayList());
        }
        if (value instanceof scala.collection.Iterable) {
            return all(((scala.collection.Iterable) value).iterator());
        }
        return unknown(value);
    }

    private static Object unknown(Object value) {
        if (value instanceof scala.Option || value.getClass().getName().startsWith("scala.Tuple")) {
            return all(((scala.Product) value).productIterator());
        }
        boolean made = value instanceof scala.Product;
        List parts = made ? all(((scala.Product) value).productIterator()) : new ArrayList();
        return node("other", value, parts);
    }

    private static Map node(String kind, Object value, List parts) {
        Map found = new LinkedHashMap();
        found.put(kind, value.getClass().getName());
        found.put("parts", parts);
        return found;
    }

    private static List all(Iterator values) {
        List found = new ArrayList();
        while (values.hasNext()) {
            found.add(shown(values.next()));
        }
        return found;
    }
}
