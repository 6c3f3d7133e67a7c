#include "store/source/directory_names.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/files/file.h"

namespace sluice::store {
namespace {

struct DirectoryCloser {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

std::vector<std::string> names_in(const std::string& path) {
  const std::unique_ptr<DIR, DirectoryCloser> directory(::opendir(path.c_str()));
  if (directory == nullptr) {
    if (errno == ENOENT)
      throw Error(ErrorKind::kNotFound, "no such directory")
          .in(path)
          .expected("a Hugging Face model directory, a NAME.sluice store or a NAME.gguf file")
          .found("nothing")
          .fix("check the path");
    if (errno == ENOTDIR) {
      throw Error(ErrorKind::kInvalid, "not a directory")
          .in(path)
          .expected("a Hugging Face model directory, a NAME.sluice store or a NAME.gguf file")
          .found(kind_at(path))
          .fix("name the directory, not a file in it");
    }
    throw io_error("opendir", path, errno);
  }
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) throw io_error("readdir", path, errno);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace sluice::store
