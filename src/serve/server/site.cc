#include "serve/server/site.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <span>
#include <sstream>

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

// "gzip, deflate", "br;q=1.0, gzip;q=0.5", "*"; not "gzip;q=0".
bool takes_gzip(const http::Request& request) {
  const std::string* accepted = request.header("accept-encoding");
  if (accepted == nullptr) return false;
  std::optional<bool> named, any;
  std::istringstream codings(*accepted);
  for (std::string coding; std::getline(codings, coding, ',');) {
    std::erase_if(coding, [](char c) { return c == ' ' || c == '\t'; });
    const std::size_t end = std::min(coding.find(';'), coding.size());
    const std::string_view quality = std::string_view(coding).substr(end);
    const bool wanted = !quality.starts_with(";q=0") || quality.find_first_of("123456789") != quality.npos;
    std::string name = coding.substr(0, end);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name == "gzip" || name == "x-gzip") named = wanted;
    if (name == "*") any = wanted;
  }
  return named.value_or(any.value_or(false));
}

}  // namespace

Site::Site(const std::string& directory) {
  if (directory.empty()) {
    for (const PageFile& file : page_files())
      files_[std::string(file.name)] = {file.gzip, file.plain, etag_of(file.gzip), etag_of(file.plain), {}};
    return;
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    if (entry.is_regular_file())
      files_[entry.path().filename().string()] = {{}, {}, {}, {}, entry.path().string()};
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
  const bool own = file.path.empty(), gzip = own && takes_gzip(request);
  response.body =
      own ? std::string(gzip ? file.gzip : file.plain) : read_text_file(file.path, kMostBytesOfFile);
  const std::string etag = !own ? etag_of(response.body) : gzip ? file.gzip_etag : file.plain_etag;
  response.headers = page_headers(etag);
  if (own) response.headers.emplace_back("Vary", "Accept-Encoding");
  if (gzip) response.headers.emplace_back("Content-Encoding", "gzip");
  if (has_it(request, etag)) {
    response.status = 304;
    response.body.clear();
  }
  return response;
}

}  // namespace sluice::serve
