package power;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** The power switch of a test: armed for one operation below a folder; once cut, nothing below the folder can be changed. */
public final class Power {
    private static final Pattern UNFINISHED = Pattern.compile("/\\.([^/]+)\\.[0-9a-fA-F-]{8,36}\\.tmp$");
    private static String folder;
    private static String verb;
    private static Pattern name;
    private static String moment;
    private static boolean fired;
    private static boolean cut;

    private Power() {}

    /** Wait for an operation: verb `put` (a file appears under its name) or `remove`. */
    public static synchronized void arm(String below, String armedVerb, String regex, String at) {
        folder = below;
        verb = armedVerb;
        name = Pattern.compile(regex);
        moment = at;
        fired = false;
        cut = false;
    }

    public static synchronized void restore() {
        folder = null;
        cut = false;
    }

    public static synchronized boolean hasFired() {
        return fired;
    }

    public static boolean isUnfinished(String path) {
        return UNFINISHED.matcher(path).find();
    }

    /** What happens to an operation: nothing (empty), the armed moment, or `cut`. `write` stands for the bytes of a file that is put later. */
    public static synchronized String meet(String operation, String path) {
        if (folder == null || !path.startsWith(folder)) return "";
        if (cut) return "cut";
        boolean writes = operation.equals("write");
        boolean wanted = moment.equals("disk full") || moment.equals("partial write");
        if (fired || !(writes ? verb.equals("put") && wanted : verb.equals(operation) && !wanted)) return "";
        Matcher unfinished = UNFINISHED.matcher(path);
        if (!name.matcher(unfinished.find() ? unfinished.replaceFirst("/$1") : path).find()) return "";
        fired = true;
        cut = moment.equals("before") || moment.equals("after") || moment.equals("partial write");
        return moment;
    }

    static void check(String operation, Path path) throws IOException {
        fail(meet(operation, path.toUri().getPath()));
    }

    static void fail(String met) throws IOException {
        if (met.equals("disk full")) throw new IOException("No space left on device");
        if (met.equals("I/O error")) throw new IOException("Input/output error");
        if (met.length() > 0 && !met.equals("after")) throw new IOException("the power is cut");
    }

    /** A file being written: half of a block arrives, or the file is whole and its closing fails. */
    static final class Written extends FilterOutputStream {
        private final String path;
        private boolean closed;

        Written(OutputStream out, Path path) {
            super(out);
            this.path = path.toUri().getPath();
        }

        public void write(int b) throws IOException {
            write(new byte[] {(byte) b}, 0, 1);
        }

        public void write(byte[] bytes, int from, int length) throws IOException {
            String met = meet("write", path);
            if (met.equals("disk full") || met.equals("partial write")) out.write(bytes, from, length / 2);
            fail(met);
            out.write(bytes, from, length);
        }

        public void close() throws IOException {
            if (closed) return;
            closed = true;
            out.close();
            if (!isUnfinished(path)) fail(meet("close", path).equals("cut") ? "cut" : meet("put", path));
        }
    }

    /** The local file system below Hadoop's checksums. */
    public static final class Disk extends RawLocalFileSystem {
        protected OutputStream createOutputStreamWithMode(Path f, boolean append, FsPermission permission) throws IOException {
            check("create", f);
            // A file that is not renamed appears when it is created; whole it is when it was closed.
            if (!isUnfinished(f.toUri().getPath()) && isArmed("before")) check("put", f);
            return new Written(super.createOutputStreamWithMode(f, append, permission), f);
        }

        public boolean rename(Path from, Path to) throws IOException {
            check("put", to);
            return super.rename(from, to);
        }

        public boolean delete(Path f, boolean recursive) throws IOException {
            check("remove", f);
            return super.delete(f, recursive);
        }

        public void setPermission(Path f, FsPermission permission) {
            // Hadoop starts a process for each.
        }

        public boolean mkdirs(Path f) throws IOException {
            check("create", f);
            return super.mkdirs(f);
        }
    }

    static synchronized boolean isArmed(String at) {
        return folder != null && at.equals(moment);
    }

    /** For `fs.file.impl`. */
    public static final class Files extends LocalFileSystem {
        public Files() {
            super(new Disk());
        }
    }

    static final class DiskContext extends DelegateToFileSystem {
        DiskContext(Configuration conf) throws Exception {
            super(FsConstants.LOCAL_FS_URI, new Disk(), conf, "file", false);
        }

        public int getUriDefaultPort() {
            return -1;
        }

        public boolean isValidName(String src) {
            return true;
        }
    }

    /** For `fs.AbstractFileSystem.file.impl`. */
    public static final class Context extends ChecksumFs {
        public Context(URI uri, Configuration conf) throws Exception {
            super(new DiskContext(conf));
        }
    }
}
