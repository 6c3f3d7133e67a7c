#include "streams/standard_output.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <streambuf>
#include <string_view>

#include "base/error.h"
#include "base/shown_text.h"
#include "streams/exit_code.h"
#include "streams/interrupt.h"
#include "streams/standard_error.h"
#include "streams/write_text.h"

namespace sluice::app {
namespace {

constexpr std::string_view kName = "standard output";

// Throws what the errno of a write means; nothing for 0.
void check_write(int error) {
  if (error == EPIPE) throw Exit{kExitReaderGone};
  if (error == EBADF)
    throw Error(ErrorKind::kIo, "the result cannot be written")
        .in(kName)
        .expected("a file, pipe or terminal that is open for writing")
        .found("one that is closed, or open for reading alone")
        .fix("open it, or send it to /dev/null if nobody wants it");
  if (error != 0)
    throw Error(ErrorKind::kIo, "write failed, and the result is not complete")
        .in(kName)
        .expected("a file, pipe or terminal that takes all of it")
        .found(std::strerror(error))
        .fix(io_error("write", kName, error).fix_text());
}

void check_reader() {
  struct pollfd output = {STDOUT_FILENO, 0, 0};
  if (::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0) check_write(EPIPE);
}

// A file on a disk that has no room. Only the administrator may use what is reserved for him.
bool on_a_full_disk() {
  struct stat file {};
  struct statvfs disk {};
  if (::fstat(STDOUT_FILENO, &file) != 0 || !S_ISREG(file.st_mode)) return false;
  if (::fstatvfs(STDOUT_FILENO, &disk) != 0 || disk.f_blocks == 0) return false;
  return (::geteuid() == 0 ? disk.f_bfree : disk.f_bavail) == 0;
}

}  // namespace

class StandardOutput::Buffer final : public std::streambuf {
 public:
  Buffer() : terminal_(::isatty(STDOUT_FILENO) == 1) { empty(); }

  void check_written() const { check_write(error_); }

 private:
  int_type overflow(int_type character) override {
    sync();
    if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
    const char text = traits_type::to_char_type(character);
    return xsputn(&text, 1) == 1 ? character : traits_type::eof();
  }

  std::streamsize xsputn(const char* text, std::streamsize size) override {
    if (epptr() - pptr() < size) sync();
    if (epptr() - pptr() < size) {  // for a terminal, or larger than the buffer
      write({text, static_cast<std::size_t>(size)});
    } else {
      std::memcpy(pptr(), text, static_cast<std::size_t>(size));
      pbump(static_cast<int>(size));
    }
    return size;
  }

  int sync() override {
    const std::string_view text(pbase(), static_cast<std::size_t>(pptr() - pbase()));
    empty();  // a write that fails is not tried again
    write(text);
    return 0;
  }

  void empty() { setp(bytes_.data(), bytes_.data() + (terminal_ ? 0 : bytes_.size())); }

  void write(std::string_view text) {
    if (text.empty() || error_ != 0) return;
    remove_live_line();
    error_ = write_text(STDOUT_FILENO, text);
    check_written();
  }

  const bool terminal_;
  int error_ = 0;  // from the write that failed
  std::array<char, 1 << 16> bytes_;
};

StandardOutput::StandardOutput() : buffer_(std::make_unique<Buffer>()) {
  before_ = std::cout.rdbuf(buffer_.get());
  std::cout.exceptions(std::ios::badbit);  // what the buffer throws comes out of std::cout
}

StandardOutput::~StandardOutput() {
  std::cout.exceptions(std::ios::goodbit);
  std::cout.rdbuf(before_);
}

void StandardOutput::finish() {
  buffer_->pubsync();
  buffer_->check_written();
}

void StandardOutput::finish_silently() noexcept {
  try {
    buffer_->pubsync();
  } catch (...) {
    // The error that is about to be told comes first.
  }
}

std::string output_text(std::string_view text) {
  return ::isatty(STDOUT_FILENO) == 1 ? escaped_lines(text) : std::string(text);
}

void check_output() {
  check_reader();
  check_output_device();
}

void check_output_device() {
  // A write of no bytes fails wherever no byte could be written, but on a full disk.
  if (::write(STDOUT_FILENO, "", 0) < 0) check_write(errno);
  if (on_a_full_disk()) check_write(ENOSPC);
}

bool interrupted_or_unread() {
  check_reader();
  return interrupted();
}

}  // namespace sluice::app
