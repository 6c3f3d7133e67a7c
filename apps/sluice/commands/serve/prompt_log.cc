#include "commands/serve/prompt_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "streams/standard_error.h"

namespace sluice::app {
namespace {

void append(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file == -1) throw io_error("open", path, errno);
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written <= 0) {
      const int error = errno;
      ::close(file);
      throw io_error("write", path, error);
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  ::close(file);
}

}  // namespace

std::function<void(std::string_view, std::string_view, std::string_view)> prompt_log(
    const std::string& directory) {
  ::mkdir(directory.c_str(), 0700);  // if it is not there
  if (::access(directory.c_str(), W_OK | X_OK) != 0) throw io_error("open", directory, errno);
  print_warning("prompts are kept in {}", directory);
  return [directory, lock = std::make_shared<std::mutex>()](std::string_view id, std::string_view what,
                                                            std::string_view text) {
    const std::lock_guard guard(*lock);
    try {
      append(directory + '/' + std::string(id) + ".txt",
             std::string(what) + ":\n" + std::string(text) + "\n\n");
    } catch (const Error& error) {
      print_warning("{}", error.what());
    }
  };
}

}  // namespace sluice::app
