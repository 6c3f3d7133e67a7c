#include "base/error.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sluice {

Error::Error(ErrorKind kind, std::string_view message) : kind_(kind), message_(message) { rebuild(); }

Error& Error::in(std::string_view path) {
  where_ = path;
  return rebuild();
}

Error& Error::in(std::string_view path, std::uint64_t offset_bytes) {
  where_ = path;
  offset_ = offset_bytes;
  return rebuild();
}

Error& Error::expected(std::string_view text) {
  expected_ = text;
  return rebuild();
}

Error& Error::found(std::string_view text) {
  found_ = text;
  return rebuild();
}

Error& Error::fix(std::string_view text) {
  fix_ = text;
  return rebuild();
}

Error& Error::rebuild() {
  text_.clear();
  if (!where_.empty()) {
    text_ += where_;
    if (offset_) text_.append(" at byte ").append(std::to_string(*offset_));
    text_ += ": ";
  }
  text_ += message_;
  if (!expected_.empty()) text_.append("; expected ").append(expected_);
  if (!found_.empty()) text_.append(expected_.empty() ? "; found " : ", found ").append(found_);
  if (!fix_.empty()) text_.append("; ").append(fix_);
  return *this;
}

Error io_error(std::string_view call, std::string_view path, int errno_value) {
  const bool missing = errno_value == ENOENT || errno_value == ENOTDIR;
  Error error(missing ? ErrorKind::kNotFound : ErrorKind::kIo,
              std::string(call) + " failed: " + std::strerror(errno_value));
  error.in(path);
  return error;
}

void check_failed(const char* expression, const char* file, int line, const std::string& values) {
  std::fprintf(stderr, "sluice: internal error: %s is false at %s:%d%s%s\n", expression, file, line,
               values.empty() ? "" : ": ", values.c_str());
  std::abort();
}

}  // namespace sluice
