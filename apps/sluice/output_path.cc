#include "output_path.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/error.h"

namespace sluice::app {

void check_output_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw Error(ErrorKind::kInvalid, "something is there that is not replaced")
        .in(path)
        .expected("a regular file, or none")
        .found(fs::is_directory(status) ? "a directory" : "a link, device, pipe or socket")
        .fix("choose another name");
  }
  const fs::path parent = fs::path(path).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  if (!fs::is_directory(directory, ignored)) {
    throw Error(ErrorKind::kNotFound, "no such directory")
        .in(directory)
        .expected("a directory to write " + fs::path(path).filename().string() + " in")
        .fix("make it first, or choose another place");
  }
  if (::access(directory.c_str(), W_OK | X_OK) != 0)
    throw io_error("write", directory, errno).fix("choose a directory that you may write in");
}

}  // namespace sluice::app
