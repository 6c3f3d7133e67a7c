#include "base/error.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error_text.h"
#include "base/setting.h"
#include "base/shown_text.h"

namespace sluice {

namespace {

// Safe to show, except for marks of settings, which error_text() turns into names.
std::string with_marks(std::string_view text) {
  std::string safe;
  std::size_t at = 0;  // where a mark may begin
  while ((at = text.find(Setting::kMarkBegin, at)) != text.npos) {
    const std::string_view mark = leading_mark(text.substr(at));
    if (mark.empty()) {
      ++at;
      continue;
    }
    safe.append(shown_text(text.substr(0, at))).append(mark);
    text.remove_prefix(at + mark.size());
    at = 0;
  }
  return safe + shown_text(text);
}

}  // namespace

Error::Error(ErrorKind kind, std::string_view message) : kind_(kind), message_(with_marks(message)) {
  rebuild();
}

Error& Error::in(std::string_view path) {
  where_ = with_marks(path);
  return rebuild();
}

Error& Error::in(std::string_view path, std::uint64_t offset_bytes) {
  where_ = with_marks(path);
  offset_ = offset_bytes;
  return rebuild();
}

Error& Error::expected(std::string_view text) {
  expected_ = with_marks(text);
  return rebuild();
}

Error& Error::found(std::string_view text) {
  found_ = with_marks(text);
  return rebuild();
}

Error& Error::fix(std::string_view text) {
  fix_ = with_marks(text);
  return rebuild();
}

Error& Error::rebuild() {
  text_ = error_text(*this, NamedBy::kFlag);
  return *this;
}

std::string error_text(const Error& error, NamedBy by, const SettingNames& names) {
  const auto shown = [&](const std::string& part) { return shown_text(with_names(part, by, names)); };
  const std::string where = shown(error.where()), expected = shown(error.expected_text());
  std::string text;
  if (!where.empty()) {
    text += where;
    if (error.offset()) text.append(" at byte ").append(std::to_string(*error.offset()));
    text += ": ";
  }
  text += shown(error.message());
  if (!expected.empty()) text.append("; expected ").append(expected);
  if (!error.found_text().empty())
    text.append(expected.empty() ? "; found " : ", found ").append(shown(error.found_text()));
  if (!error.fix_text().empty()) text.append("; ").append(shown(error.fix_text()));
  return text;
}

namespace {

struct CallRow {
  std::string_view call, failed, expected;
};

// What a user calls the failure of a call, behind the name of the file, and what the call needs.
constexpr std::string_view kFileThere = "a file that is there and may be read",
                           kDirectoryThere = "a directory that is there and may be read",
                           kPlaceThere = "a directory that is there, where you may write",
                           kRoom = "a place with room, where you may write",
                           kOwn = "a file or directory that you may change",
                           kLooked = "a file or directory that is there";
constexpr CallRow kCalls[] = {
    {"open", "cannot be opened", kFileThere},
    {"opendir", "cannot be opened", kDirectoryThere},
    {"create", "cannot be made", kPlaceThere},
    {"mkdir", "the directory cannot be made", kPlaceThere},
    {"mkdtemp", "the directory cannot be made", kPlaceThere},
    {"read", "cannot be read", kFileThere},
    {"readdir", "the names in it cannot be read", kDirectoryThere},
    {"write", "cannot be written", kRoom},
    {"fsync", "cannot be brought to the disk", kRoom},
    {"fdatasync", "cannot be brought to the disk", kRoom},
    {"close", "cannot be closed", kRoom},
    {"rename", "cannot be renamed", kOwn},
    {"remove", "cannot be removed", kOwn},
    {"unlink", "cannot be removed", kOwn},
    {"rmdir", "cannot be removed", kOwn},
    {"truncate", "cannot be cut", kRoom},
    {"ftruncate", "cannot be cut", kRoom},
    {"chmod", "its permissions cannot be set", kOwn},
    {"lock", "cannot be locked", kOwn},
    {"flock", "cannot be locked", kOwn},
    {"stat", "cannot be looked at", kLooked},
    {"fstat", "cannot be looked at", kLooked},
    {"statvfs", "the free space of its disk cannot be told", kLooked},
};

CallRow row_of(std::string_view call) {
  for (const CallRow& row : kCalls)
    if (row.call == call) return row;
  return {call, "", "a system that allows it"};
}

// The usual remedy for a failure of this kind; a caller that knows a better one overwrites it.
std::string usual_fix(std::string_view call, int errno_value) {
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
      return "close other programs, or give a smaller " + Setting::kMemory;
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
  const CallRow row = row_of(call);
  Error error(missing ? ErrorKind::kNotFound : ErrorKind::kIo,
              row.failed.empty() ? std::string(call) + " failed" : std::string(row.failed));
  error.in(path).expected(row.expected).found(std::strerror(errno_value)).fix(usual_fix(call, errno_value));
  return error;
}

void check_failed(const char* expression, const char* file, int line, const std::string& values) {
  std::fprintf(stderr, "sluice: internal error: %s is false at %s:%d%s%s\n", expression, file, line,
               values.empty() ? "" : ": ", values.c_str());
  std::abort();
}

}  // namespace sluice
