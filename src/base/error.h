// Errors a caller or a user can act on. Three classes, three means (docs/architecture.md, "Errors"):
//   expected outcomes  return a value;
//   bad input          throws Error with where, expected, found and what to do;
//   our own bugs       trip SLUICE_CHECK, which prints the values and aborts.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

enum class ErrorKind {
  kUsage,        // flags or arguments that make no sense (exit code 2)
  kNotFound,     // a file or a name that is not there
  kInvalid,      // a file, config or request whose content is not legal
  kUnsupported,  // legal, but of a version or kind this program does not know
  kCorrupt,      // a checksum or structure that was once right and is not any more
  kIo,           // the system refused or failed a read, write or other call
  kBudget,       // the memory budget is too small
  kInterrupted,  // stopped by the user (exit code 130)
};

// One error, built where it is found:
//   throw Error(ErrorKind::kInvalid, "header length is larger than the file")
//       .in(path, offset).expected("at most 4096").found("18446744073709551615")
//       .fix("download the file again");
// what() is the whole message on one line: "PATH at byte N: MESSAGE; expected …, found …; FIX".
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string_view message);

  Error& in(std::string_view path);  // the file, directory, tensor or flag that the error is about
  Error& in(std::string_view path, std::uint64_t offset_bytes);
  Error& expected(std::string_view text);
  Error& found(std::string_view text);
  Error& fix(std::string_view text);  // what the user can do

  ErrorKind kind() const { return kind_; }
  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& message() const { return message_; }
  const std::string& where() const { return where_; }
  std::optional<std::uint64_t> offset() const { return offset_; }
  const std::string& expected_text() const { return expected_; }
  const std::string& found_text() const { return found_; }
  const std::string& fix_text() const { return fix_; }

 private:
  Error& rebuild();

  ErrorKind kind_;
  std::string message_, where_, expected_, found_, fix_;
  std::optional<std::uint64_t> offset_;
  std::string text_;
};

// What a call of the system could not do with `path`, e.g. io_error("open", path, errno): "cannot be opened",
// found the text of `errno_value`. Error(kIo), or (kNotFound) where something is not there.
Error io_error(std::string_view call, std::string_view path, int errno_value);

[[noreturn]] void check_failed(const char* expression, const char* file, int line, const std::string& values);

// Checks our own invariants, never files, requests or flags. Active in every build.
#define SLUICE_CHECK(expression, ...)                                                      \
  do {                                                                                     \
    if (!(expression)) [[unlikely]]                                                        \
      ::sluice::check_failed(#expression, __FILE__, __LINE__, ::std::string{__VA_ARGS__}); \
  } while (false)

}  // namespace sluice
