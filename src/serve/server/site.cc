#include "serve/server/site.h"

#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "base/setting.h"
#include "serve/page/page_files.h"

namespace sluice::serve {
namespace {

constexpr Bytes kMostBytesOfFile = 4 * kMiB;

std::string etag_of(std::string_view content) {
  return '"' + sha256_hex(std::as_bytes(std::span(content))).substr(0, 32) + '"';
}

std::string_view type_of(std::string_view name) {
  const std::string_view ending = name.substr(std::min(name.rfind('.'), name.size()));
  if (ending == ".html") return "text/html; charset=utf-8";
  if (ending == ".js") return "text/javascript; charset=utf-8";
  if (ending == ".css") return "text/css; charset=utf-8";
  if (ending == ".svg") return "image/svg+xml";
  if (ending == ".png") return "image/png";
  if (ending == ".ico") return "image/x-icon";
  return "application/octet-stream";
}

http::Headers page_headers(const std::string& etag) {
  return {
      {"ETag", etag},
      {"Cache-Control", "no-cache"},
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"}};
}

// Whether the client has this content already.
bool has_it(const http::Request& request, const std::string& etag) {
  const std::string* known = request.header("if-none-match");
  return known != nullptr && (*known == "*" || known->find(etag) != std::string::npos);
}

}  // namespace

Site::Site(const std::string& directory) {
  if (directory.empty()) {
    for (const PageFile& file : page_files())
      files_[std::string(file.name)] = {file.gzip, etag_of(file.gzip), {}};
    return;
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    if (entry.is_regular_file()) files_[entry.path().filename().string()] = {{}, {}, entry.path().string()};
  if (error)
    throw Error(ErrorKind::kNotFound, "the directory of the page cannot be read")
        .in(directory)
        .found(error.message())
        .fix("give another one by " + Setting::kUiDir);
}

std::optional<http::Response> Site::answer(const http::Request& request) const {
  constexpr std::string_view kFolder = "/ui/";
  const std::string_view path = request.path;
  const std::string_view name = path == "/" || path == kFolder ? "index.html" : path.substr(kFolder.size());
  const auto found = files_.find(name);
  if (found == files_.end()) return std::nullopt;
  const File& file = found->second;
  http::Response response;
  response.content_type = type_of(name);
  std::string etag = file.etag;
  if (file.path.empty()) {
    response.body = file.gzip;
  } else {
    response.body = read_text_file(file.path, kMostBytesOfFile);
    etag = etag_of(response.body);
  }
  response.headers = page_headers(etag);
  if (file.path.empty()) response.headers.emplace_back("Content-Encoding", "gzip");
  if (has_it(request, etag)) {
    response.status = 304;
    response.body.clear();
  }
  return response;
}

}  // namespace sluice::serve
