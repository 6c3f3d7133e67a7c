// The page as HTTP answers: the files that the program brings with it, or those of a directory.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http/request.h"

namespace sluice::serve {

// Immutable, thread-safe. Names of files come from the directory, never from a request.
class Site {
 public:
  explicit Site(const std::string& directory);  // empty: the program's own. Error(kNotFound), (kIo)
  // Empty: there is no such file. The path is "/" or begins with "/ui/".
  std::optional<http::Response> answer(const http::Request& request) const;
  static bool is_path_of(std::string_view path) { return path == "/" || path.starts_with("/ui/"); }

 private:
  struct File {
    std::string_view gzip, plain;
    std::string gzip_etag, plain_etag;
    std::string path;  // in the directory
  };
  std::map<std::string, File, std::less<>> files_;
};

}  // namespace sluice::serve
