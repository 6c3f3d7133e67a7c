// Rows of a matrix that stays on disk: read when they are asked for; the most recently used ones are kept.
// Used for the input embedding: a token needs one row of it, and the whole would be the largest tensor in
// memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/accountant.h"
#include "device/host_buffer.h"
#include "fetch/weight_files.h"
#include "store/checkpoint.h"

namespace sluice::fetch {

// How rows of a matrix can be read separately.
struct RowLayout {
  std::string tensor;
  const codec::MatrixFormat* format = nullptr;  // the format of words
  std::uint64_t rows = 0, columns = 0;
  std::uint64_t rows_together = 1;  // read at once: rows under one checksum, or one row without checksums
  bool pieces = false;  // row groups are pieces of the checkpoint; else any row of one large piece
  Bytes row_bytes() const { return format->plane_bytes({1, columns}, 0); }
};
// Empty if a row cannot be read without much more of the matrix: the matrix is coded, or has one checksum for
// all rows.
std::optional<RowLayout> row_layout(const store::Checkpoint& checkpoint, const std::string& tensor);

// Thread-compatible; has its own reader.
class RowTable {
 public:
  // Charges resident_bytes() to `dense`. `checkpoint` must outlive this.
  RowTable(const store::Checkpoint& checkpoint, const RowLayout& layout, const FetchOptions& options,
           device::Accountant& accountant);
  static Bytes resident_bytes(const RowLayout& layout);

  // Calls take(i, words of row rows[i]) once for every i, in any order; the words are valid during the call.
  // Error(kIo), (kCorrupt) naming file and offset: some rows may then have been taken. REQUIRES: rows in
  // range.
  void read(std::span<const std::int32_t> rows,
            const std::function<void(std::size_t i, const std::byte* words)>& take);
  const RowLayout& layout() const { return layout_; }
  DiskCounters counters() { return files_.reader().counters(); }

 private:
  struct Kept {
    std::int64_t row = -1;
    std::uint64_t used = 0;  // time of last use, by clock_
  };
  struct Wanted {
    std::int64_t row;
    std::size_t index;  // index into the caller's rows
  };
  struct Range {  // rows that are on their way or have arrived
    std::int64_t first = 0, end = 0;
    FileRun run;
    std::optional<std::uint64_t> xxh3;
    Bytes offset = 0, length = 0;  // in the file
    const std::byte* words(const std::byte* buffer) const {
      return buffer + run.place + (offset - run.offset);
    }
  };
  Range range_of(std::int64_t row, std::size_t slot);
  std::size_t read_some(std::size_t first, const std::function<void(std::size_t, const std::byte*)>& take);
  std::byte* kept_words(std::size_t slot) const { return kept_buffer_.data() + slot * layout_.row_bytes(); }
  void keep(std::int64_t row, const std::byte* words);

  const store::Checkpoint& checkpoint_;
  const RowLayout layout_;
  WeightFiles files_;
  device::HostBuffer read_buffer_, kept_buffer_;
  std::vector<Kept> kept_;
  std::uint64_t clock_ = 0;
  store::Piece piece_;  // reused between reads
  std::vector<Wanted> wanted_;
  std::vector<Range> ranges_;
  std::vector<DiskCompletion> done_;
};

}  // namespace sluice::fetch
