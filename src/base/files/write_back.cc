#include "base/files/write_back.h"

#include <fcntl.h>

#include <cerrno>

#include "base/error.h"

namespace sluice {

void WriteBack::wrote(int fd, Bytes bytes, const std::string& path) {
  kept_ += bytes;
  if (kept_ < kStep) return;
  kept_ = 0;
  // Waits for what is on its way, and sends the rest of the file. An error must be told: the sync behind it
  // would not tell it again.
  constexpr unsigned kHow = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE;
  if (::sync_file_range(fd, 0, 0, kHow) == 0) return;
  const bool no_such_call = errno == ENOSYS || errno == EINVAL || errno == ESPIPE || errno == EOPNOTSUPP;
  if (!no_such_call) throw io_error("write", path, errno);
}

}  // namespace sluice
