#include "trace/byte_source.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"

namespace sluice::trace {
namespace {

class FileBytes final : public ByteSource {
 public:
  explicit FileBytes(const std::string& path) : ByteSource(path), file_(InputFile::open(path)) {}

  std::size_t read(std::span<std::byte> out) override {
    const Bytes count = std::min<Bytes>(out.size(), file_.size() - offset_);
    file_.read_at(offset_, out.first(static_cast<std::size_t>(count)));
    file_.drop_cache(offset_, count);
    offset_ += count;
    return static_cast<std::size_t>(count);
  }

 private:
  InputFile file_;
  Bytes offset_ = 0;
};

class MemoryBytes final : public ByteSource {
 public:
  MemoryBytes(std::span<const std::byte> bytes, const std::string& name) : ByteSource(name), left_(bytes) {}

  std::size_t read(std::span<std::byte> out) override {
    const std::size_t count = std::min(out.size(), left_.size());
    std::copy_n(left_.begin(), count, out.begin());
    left_ = left_.subspan(count);
    return count;
  }

 private:
  std::span<const std::byte> left_;
};

class ZstdBytes final : public ByteSource {
 public:
  explicit ZstdBytes(const std::string& path)
      : ByteSource(path), file_(path), buffer_(ZSTD_DStreamInSize()), stream_(ZSTD_createDStream()) {
    SLUICE_CHECK(stream_ != nullptr);
  }
  ~ZstdBytes() override { ZSTD_freeDStream(stream_); }

  std::size_t read(std::span<std::byte> out) override {
    ZSTD_outBuffer output = {out.data(), out.size(), 0};
    while (output.pos < output.size) {
      if (input_.pos == input_.size && !ended_) {
        const std::size_t count = file_.read(buffer_);
        input_ = {buffer_.data(), count, 0};
        ended_ = count == 0;
        taken_ += count;
      }
      const std::size_t before = output.pos, taken_before = input_.pos;
      const std::size_t wanted = ZSTD_decompressStream(stream_, &output, &input_);
      if (ZSTD_isError(wanted) != 0) {
        throw Error(ErrorKind::kCorrupt, "compressed data is broken")
            .in(path(), taken_ - (input_.size - input_.pos))
            .expected("zstd frames")
            .found(ZSTD_getErrorName(wanted))
            .fix("copy or download the file again");
      }
      const bool moved = output.pos != before || input_.pos != taken_before;
      if (moved) frame_open_ = wanted != 0;
      if (ended_ && !moved) {
        if (frame_open_) {
          throw Error(ErrorKind::kCorrupt, "compressed data ends too early")
              .in(path(), taken_)
              .expected("the rest of a zstd frame")
              .found("the end of the file")
              .fix("copy or download the file again");
        }
        break;
      }
    }
    return output.pos;
  }

 private:
  FileBytes file_;
  std::vector<std::byte> buffer_;
  ZSTD_DStream* stream_;
  ZSTD_inBuffer input_ = {nullptr, 0, 0};
  Bytes taken_ = 0;
  bool ended_ = false, frame_open_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  if (path.ends_with(".zst")) return std::make_unique<ZstdBytes>(path);
  return std::make_unique<FileBytes>(path);
}

std::unique_ptr<ByteSource> bytes_in_memory(std::span<const std::byte> bytes, const std::string& name) {
  return std::make_unique<MemoryBytes>(bytes, name);
}

}  // namespace sluice::trace
