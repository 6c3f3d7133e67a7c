#include "fetch/dense/row_table.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "fetch/checked_hash.h"
#include "fetch/dense/layout_reads.h"

namespace sluice::fetch {
namespace {

constexpr Bytes kMostTogether = 256 * kKiB;  // the most that one row may cost to read
constexpr std::size_t kInFlight = 8;
constexpr std::uint64_t kMostKept = 1024, kLeastKept = 16;
constexpr std::uint64_t kKeptShare = 32;  // one row in this many of the matrix is kept

// Bytes that one range takes in the buffer: with whole blocks at both ends.
Bytes range_bytes(const RowLayout& layout) {
  return round_up(layout.rows_together * layout.row_bytes(), kBlockBytes) + kBlockBytes;
}
std::uint64_t kept_rows(const RowLayout& layout) {
  return std::min(layout.rows, std::clamp(layout.rows / kKeptShare, kLeastKept, kMostKept));
}

}  // namespace

std::optional<RowLayout> row_layout(const store::Checkpoint& checkpoint, const std::string& tensor) {
  const store::TensorInfo* const info = checkpoint.find(tensor);
  if (info == nullptr || info->shape.size() != 2 || info->elements() == 0) return std::nullopt;
  const std::vector<store::Piece> pieces = checkpoint.pieces_of(tensor);
  const store::StoredPiece first = checkpoint.locate(pieces.front());
  RowLayout layout{.tensor = tensor,
                   .format = codec::word_format(info->dtype),
                   .rows = info->shape[0],
                   .columns = info->shape[1]};
  if (layout.format == nullptr) return std::nullopt;
  if (pieces.size() == 1 && first.raw() && !first.planes[0].xxh3) return layout;
  layout.pieces = true;
  layout.rows_together = pieces.front().elements / layout.columns;
  if (layout.rows_together * layout.row_bytes() > kMostTogether) return std::nullopt;
  std::uint64_t row = 0;
  for (const store::Piece& piece : pieces) {
    const std::uint64_t rows = std::min(layout.rows_together, layout.rows - row);
    if (rows == 0 || piece.elements != rows * layout.columns) return std::nullopt;
    row += rows;
  }
  return first.raw() ? std::optional(layout) : std::nullopt;
}

RowTable::RowTable(const store::Checkpoint& checkpoint, const RowLayout& layout, const FetchOptions& options,
                   device::Accountant& accountant)
    : checkpoint_(checkpoint),
      layout_(layout),
      files_(checkpoint, options),
      read_buffer_(accountant, device::Account::kDense, kInFlight * range_bytes(layout)),
      kept_buffer_(accountant, device::Account::kDense, kept_rows(layout) * layout.row_bytes()),
      kept_(kept_rows(layout)) {
  piece_.tensor = layout.tensor;
}

Bytes RowTable::resident_bytes(const RowLayout& layout) {
  return round_up(kInFlight * range_bytes(layout), kBlockBytes) +
         round_up(kept_rows(layout) * layout.row_bytes(), kBlockBytes);
}

void RowTable::read(std::span<const std::int32_t> rows,
                    const std::function<void(std::size_t i, const std::byte* words)>& take) {
  wanted_.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SLUICE_CHECK(rows[i] >= 0 && static_cast<std::uint64_t>(rows[i]) < layout_.rows);
    const auto found = std::ranges::find(kept_, std::int64_t{rows[i]}, &Kept::row);
    if (found == kept_.end()) {
      wanted_.push_back({rows[i], i});
      continue;
    }
    found->used = ++clock_;
    take(i, kept_words(static_cast<std::size_t>(found - kept_.begin())));
  }
  std::ranges::sort(wanted_, {}, [](const Wanted& wanted) { return std::pair(wanted.row, wanted.index); });
  for (std::size_t next = 0; next < wanted_.size();) next = read_some(next, take);
}

RowTable::Range RowTable::range_of(std::int64_t row, std::size_t slot) {
  const auto together = static_cast<std::int64_t>(layout_.rows_together);
  Range range;
  range.first = row / together * together;
  range.end = std::min(range.first + together, static_cast<std::int64_t>(layout_.rows));
  piece_.first_element = static_cast<std::uint64_t>(range.first) * layout_.columns;
  piece_.elements = static_cast<std::uint64_t>(range.end - range.first) * layout_.columns;
  const store::StoredPiece stored = checkpoint_.locate(piece_);
  SLUICE_CHECK(stored.raw(), "rows are coded here, and not at the start");
  range.xxh3 = stored.planes[0].xxh3;
  range.offset = stored.first().offset;
  range.length = stored.first().length;
  range.run.file = stored.first().file;
  range.run.offset = round_down(range.offset, kBlockBytes);
  range.run.length = round_up(range.offset + range.length, kBlockBytes) - range.run.offset;
  range.run.place = slot * range_bytes(layout_);
  return range;
}

// Reads what the next few of wanted_ need, and hands it out. Returns the first one that is not done.
std::size_t RowTable::read_some(std::size_t first,
                                const std::function<void(std::size_t, const std::byte*)>& take) {
  ranges_.clear();
  std::size_t end = first;
  for (; end < wanted_.size(); ++end) {
    if (!ranges_.empty() && wanted_[end].row < ranges_.back().end) continue;
    if (ranges_.size() == kInFlight) break;
    ranges_.push_back(range_of(wanted_[end].row, ranges_.size()));
  }
  const DrainAtEnd drain{files_};
  for (std::size_t i = 0; i < ranges_.size(); ++i) files_.submit(ranges_[i].run, read_buffer_.data(), i);
  done_.clear();
  files_.reader().wait(ranges_.size(), done_);
  SLUICE_CHECK(done_.size() == ranges_.size());
  for (const DiskCompletion& completion : done_) files_.check(ranges_[completion.tag].run, completion);

  std::size_t at = 0;
  std::int64_t kept = -1;
  for (std::size_t i = first; i < end; ++i) {
    while (wanted_[i].row >= ranges_[at].end) ++at;
    const Range& range = ranges_[at];
    const std::byte* const words = range.words(read_buffer_.data());
    if (range.xxh3 && (i == first || wanted_[i - 1].row < range.first))
      check_hash({words, range.length}, *range.xxh3, files_.path(range.run.file), range.offset);
    const std::byte* const row =
        words + static_cast<std::uint64_t>(wanted_[i].row - range.first) * layout_.row_bytes();
    take(wanted_[i].index, row);
    if (wanted_[i].row != kept) keep(kept = wanted_[i].row, row);
  }
  return end;
}

void RowTable::keep(std::int64_t row, const std::byte* words) {
  const auto oldest = std::ranges::min_element(kept_, {}, &Kept::used);
  std::memcpy(kept_words(static_cast<std::size_t>(oldest - kept_.begin())), words, layout_.row_bytes());
  *oldest = {row, ++clock_};
}

}  // namespace sluice::fetch
