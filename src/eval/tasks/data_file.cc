#include "eval/tasks/data_file.h"

#include <fmt/format.h>

#include <span>

#include "base/error.h"
#include "trace/byte_source.h"

namespace sluice::eval {

std::string read_data_file(const std::string& path, Bytes most) {
  const std::unique_ptr<trace::ByteSource> source = trace::open_bytes(path);
  std::string text;
  constexpr std::size_t kPiece = 256 * kKiB;
  for (std::size_t count = kPiece; count == kPiece;) {
    const std::size_t before = text.size();
    text.resize(before + kPiece);
    count = source->read(std::as_writable_bytes(std::span(text).subspan(before)));
    text.resize(before + count);
    if (text.size() > most)
      throw Error(ErrorKind::kInvalid, "the file is too large")
          .in(path)
          .expected("at most " + format_bytes(most))
          .found("more");
  }
  return text;
}

}  // namespace sluice::eval
