// SPDX-License-Identifier: MIT OR Apache-2.0
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import jdk.tools.jlink.internal.Archive;
import jdk.tools.jlink.internal.DirArchive;
import jdk.tools.jlink.internal.ImageFileCreator;
import jdk.tools.jlink.internal.ImagePluginConfiguration;
import jdk.tools.jlink.internal.Jlink;

/**
 * Makes a JDK's lib/modules from a directory with one subdirectory per module, as `jimage extract` leaves it. For where a patch
 * changes a few classes of modules: compiled with the installed JDK, they replace what was extracted.
 *
 * <p>Uses what jlink itself uses: {@code --add-exports jdk.jlink/jdk.tools.jlink.internal=ALL-UNNAMED}.
 */
final class Relink {
  public static void main(String[] arguments) throws Exception {
    Set<Archive> modules = new HashSet<>();
    try (var directories = Files.list(Path.of(arguments[0]))) {
      directories.forEach(d -> modules.add(new DirArchive(d, d.getFileName().toString())));
    }
    var noPlugins = ImagePluginConfiguration.parseConfiguration(new Jlink.PluginsConfiguration());
    ImageFileCreator.recreateJimage(Path.of(arguments[1]), modules, noPlugins, false);
  }
}
