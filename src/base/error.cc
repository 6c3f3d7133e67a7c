#include "base/error.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/shown_text.h"

namespace sluice {

Error::Error(ErrorKind kind, std::string_view message) : kind_(kind), message_(shown_text(message)) {
  rebuild();
}

Error& Error::in(std::string_view path) {
  where_ = shown_text(path);
  return rebuild();
}

Error& Error::in(std::string_view path, std::uint64_t offset_bytes) {
  where_ = shown_text(path);
  offset_ = offset_bytes;
  return rebuild();
}

Error& Error::expected(std::string_view text) {
  expected_ = shown_text(text);
  return rebuild();
}

Error& Error::found(std::string_view text) {
  found_ = shown_text(text);
  return rebuild();
}

Error& Error::fix(std::string_view text) {
  fix_ = shown_text(text);
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

namespace {

// The usual remedy for a failure of this kind; a caller that knows a better one overwrites it.
std::string_view usual_fix(std::string_view call, int errno_value) {
  const bool makes = call == "create" || call == "mkdir" || call == "rename" || call == "write";
  switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
      return makes ? "make its directory first, or choose another place" : "check the name";
    case EACCES:
    case EPERM:
    case EROFS:
      return makes ? "choose another place, where you may write"
                   : "check the permissions of the file and of the directories that lead to it";
    case EISDIR:
      return "name a file";
    case EEXIST:
      return "remove it, or choose another name";
    case ENAMETOOLONG:
      return "choose a shorter name";
    case ELOOP:
      return "check where its links lead";
    case ENOSPC:
    case EDQUOT:
      return "free some space, or choose another place";
    case EFBIG:
      return "raise the limit of the size of files (ulimit -f), or choose another file system";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n), or close other programs";
    case ENOMEM:
      return "close other programs, or give a smaller --memory";
    case EBUSY:
    case ETXTBSY:
      return "end the program that uses it, or choose another name";
    case EIO:
      return "check the disk (kernel log), or take another copy";
    default:
      return makes ? "choose another place" : "check the file, its disk and its file system (kernel log)";
  }
}

}  // namespace

Error io_error(std::string_view call, std::string_view path, int errno_value) {
  const bool missing = errno_value == ENOENT || errno_value == ENOTDIR;
  Error error(missing ? ErrorKind::kNotFound : ErrorKind::kIo,
              std::string(call) + " failed: " + std::strerror(errno_value));
  error.in(path).fix(usual_fix(call, errno_value));
  return error;
}

void check_failed(const char* expression, const char* file, int line, const std::string& values) {
  std::fprintf(stderr, "sluice: internal error: %s is false at %s:%d%s%s\n", expression, file, line,
               values.empty() ? "" : ": ", values.c_str());
  std::abort();
}

}  // namespace sluice
