import java.io.File;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.zip.CRC32;
import javax.management.MBeanServer;
import javax.management.ObjectName;

import com.sun.management.HotSpotDiagnosticMXBean;

/**
 * Writes the classes that this JVM has loaded into an archive, when it ends; for
 * engine/class_archive.py. Compiled by the Janino that Spark brings along.
 *
 * Claim: the archive appears whole or not at all, readable by its owner alone, with its length and
 * checksum in its name; nobody waits for it: whoever reads what we print sees its end before.
 * Whatever goes wrong leaves no archive, and no word.
 */
public class ClassArchive {
    private static final String TOLD = "steadyview.class-archive";

    /** False where this JVM does not keep what is needed for it, or was told before. */
    public static boolean writeAtExit(final String stem, final String temporary, final int least) {
        try {
            HotSpotDiagnosticMXBean flags = (HotSpotDiagnosticMXBean)
                ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
            boolean kept = flags.getVMOption("RecordDynamicDumpInfo").getValue().equals("true");
            if (!kept || System.setProperty(TOLD, stem) != null) {
                return false;
            }
        } catch (Exception unknown) {
            return false;
        }
        Runtime.getRuntime().addShutdownHook(new Thread("class-archive") {
            public void run() {
                write(stem, new File(temporary).toPath(), least);
            }
        });
        return true;
    }

    static void write(String stem, Path temporary, int least) {
        long loaded = ManagementFactory.getClassLoadingMXBean().getTotalLoadedClassCount();
        if (loaded < least) {
            return;
        }
        System.out.close();
        System.err.close();
        try {
            dump("\"" + temporary + "\"");
            Files.setPosixFilePermissions(temporary, PosixFilePermissions.fromString("rw-------"));
            String name = stem + "-" + Files.size(temporary) + "-" + checksum(temporary) + ".jsa";
            Files.move(temporary, new File(name).toPath(), StandardCopyOption.ATOMIC_MOVE);
        } catch (Exception failed) {
            try {
                Files.deleteIfExists(temporary);
            } catch (Exception ignored) {
                return;
            }
        }
    }

    private static void dump(String file) throws Exception {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        ObjectName commands = new ObjectName("com.sun.management:type=DiagnosticCommand");
        Object[] arguments = {new String[] {"dynamic_dump", file}};
        server.invoke(commands, "vmCds", arguments, new String[] {String[].class.getName()});
    }

    private static long checksum(Path file) throws Exception {
        CRC32 sum = new CRC32();
        byte[] block = new byte[1 << 20];
        InputStream content = Files.newInputStream(file);
        try {
            for (int n = content.read(block); n >= 0; n = content.read(block)) {
                sum.update(block, 0, n);
            }
        } finally {
            content.close();
        }
        return sum.getValue();
    }
}
