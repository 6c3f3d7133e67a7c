#include "store/pack/unit_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "codec/slices/int8_matrix.h"
#include "store/format.h"

namespace sluice::store {

UnitWriter::UnitWriter(const std::string& directory, Manifest& manifest, std::vector<std::uint32_t> dense,
                       Bytes expert_file_bytes)
    : directory_(directory),
      manifest_(manifest),
      dense_(std::move(dense)),
      expert_file_bytes_(expert_file_bytes) {
  manifest_.data_files = {{std::string(kDenseName), 0}};
  const auto grow = [&](std::uint32_t file, Bytes end) {
    while (manifest_.data_files.size() <= file)
      manifest_.data_files.push_back({expert_file_name(manifest_.data_files.size() - 1), 0});
    Bytes& size = manifest_.data_files[file].size;
    size = std::max(size, round_up(end, kRegionAlignment));
  };
  for (const PieceEntry& piece : manifest_.pieces) grow(piece.file, piece.bytes.end());
  for (const PieceEntry& piece : manifest_.pieces) {
    if (piece.chunk_count > 0)
      grow(piece.file, manifest_.chunks[piece.first_chunk + piece.chunk_count - 1].bytes.end());
  }
  dense_writer_ =
      DataWriter::open(directory_ + "/" + manifest_.data_files[0].name, manifest_.data_files[0].size);
  if (manifest_.data_files.size() > 1) {
    const DataFile& last = manifest_.data_files.back();
    expert_writer_ = DataWriter::open(directory_ + "/" + last.name, last.size);
  }
  sync_directory(directory_);
}

DataWriter& UnitWriter::writer() { return unit_.file == 0 ? dense_writer_ : expert_writer_; }

void UnitWriter::begin_dense(const PieceShape& piece) {
  is_expert_ = false;
  begin(0, {piece});
}

void UnitWriter::begin_expert(std::uint32_t layer, std::uint32_t index,
                              const std::vector<PieceShape>& pieces) {
  is_expert_ = true;
  if (manifest_.data_files.size() == 1 || manifest_.data_files.back().size >= expert_file_bytes_) {
    expert_writer_.sync();
    manifest_.data_files.push_back({expert_file_name(manifest_.data_files.size() - 1), 0});
    expert_writer_ = DataWriter::open(directory_ + "/" + manifest_.data_files.back().name, 0);
    sync_directory(directory_);  // a journal record that names the file must not outlive it
  }
  begin(static_cast<std::uint32_t>(manifest_.data_files.size() - 1), pieces);
  unit_.layer = layer;
  unit_.index = index;
}

void UnitWriter::begin(std::uint32_t file, const std::vector<PieceShape>& pieces) {
  unit_ = {};
  unit_.file = file;
  pieces_.clear();
  chunks_.assign(pieces.size(), {});
  sums_ = std::vector<Xxh3Stream>(pieces.size());
  lsb_sums_ = std::vector<Xxh3Stream>(pieces.size());
  groups_.assign(pieces.size(), {});
  for (const PieceShape& shape : pieces) {
    PieceEntry entry;
    entry.tensor = shape.tensor;
    entry.file = file;
    entry.first = shape.first;
    entry.count = shape.count;
    entry.encoding = shape.encoding;
    entry.tiles = shape.tiles;
    if (shape.matrix.rows > 0) entry.tiles = {shape.matrix.rows, shape.matrix.columns};
    entry.bytes.length = shape.encoding == Encoding::kRaw ? shape.raw_bytes : part_bytes(entry);
    if (shape.encoding == Encoding::kSliced)
      chunks_[pieces_.size()].push_back(
          {.bytes = {0, codec::SlicedShape{shape.matrix, *manifest_.slices}.lsb_bytes()},
           .count = shape.count});
    pieces_.push_back(entry);
  }
  // Writes region after region, in each the pieces one after another. The size of the exponents is known only
  // at the end. No unit has both exponents and slices.
  Bytes at = cursor();
  // bytes_of(i): the part of pieces_[i] in this region; null if it has none.
  const auto place = [&](Region& region, const auto& bytes_of) {
    region.offset = at;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      Region* const bytes = bytes_of(i);
      if (bytes == nullptr) continue;
      bytes->offset = bytes->length == 0 ? region.offset : round_up(at, kPieceAlignment);
      if (bytes->length > 0) at = bytes->end();
    }
    region.length = at - region.offset;
    at = round_up(at, kRegionAlignment);
  };
  const auto first_parts = [&](Encoding encoding) {
    return [this, encoding](std::size_t i) {
      // Codes of 8 bits occur in dense units only, which have one piece.
      const Encoding own = pieces_[i].encoding == Encoding::kInt8 ? Encoding::kRaw : pieces_[i].encoding;
      return own == encoding ? &pieces_[i].bytes : nullptr;
    };
  };
  place(unit_.full, first_parts(Encoding::kRaw));
  place(unit_.sm, first_parts(Encoding::kSplit));
  place(unit_.msb, first_parts(Encoding::kSliced));
  place(unit_.lsb, [&](std::size_t i) {
    return pieces_[i].encoding == Encoding::kSliced ? &chunks_[i].front().bytes : nullptr;
  });
  unit_.exp.offset = at;
}

Bytes UnitWriter::part_bytes(const PieceEntry& piece) const {
  switch (piece.encoding) {
    case Encoding::kSplit:
      return piece.plane_bytes();
    case Encoding::kSliced:
      return codec::SlicedShape{piece.matrix(), *manifest_.slices}.msb_bytes();
    case Encoding::kInt8:
      return codec::Int8Shape{piece.matrix()}.bytes();
    case Encoding::kRaw:
    case Encoding::kFormat:  // no source that pack() reads has such pieces
      break;
  }
  SLUICE_CHECK(false, std::to_string(static_cast<int>(piece.encoding)));
}

void UnitWriter::put_raw(std::size_t piece, Bytes offset_in_piece, std::span<const std::byte> bytes) {
  writer().write_at(pieces_[piece].bytes.offset + offset_in_piece, bytes);
  sums_[piece].update(bytes);
  unsynced_ += bytes.size();
}

void UnitWriter::put_split(std::size_t piece, std::uint64_t first, std::span<const std::byte> sm,
                           const codec::EncodedChunk& chunk, std::uint64_t chunk_xxh3) {
  writer().write_at(pieces_[piece].bytes.offset + first, sm);
  sums_[piece].update(sm);
  StoredChunk stored;
  stored.bytes = {unit_.exp.end(), chunk.bytes.size()};
  stored.first = first;
  stored.count = sm.size();
  stored.xxh3 = chunk_xxh3;
  stored.coded = chunk.kind == codec::ChunkKind::kCodec;
  writer().write_at(stored.bytes.offset, chunk.bytes);
  unit_.exp.length += chunk.bytes.size();
  chunks_[piece].push_back(stored);
  unsynced_ += sm.size() + chunk.bytes.size();
}

void UnitWriter::put_quantised(std::size_t piece, std::uint64_t first, const QuantisedStrips& strips) {
  PieceEntry& entry = pieces_[piece];
  const bool sliced = entry.encoding == Encoding::kSliced;
  const unsigned bits = sliced ? manifest_.slices->low : 8;
  writer().write_at(entry.bytes.offset + first * entry.matrix().strip_bytes(bits), strips.codes);
  sums_[piece].update(strips.codes);
  if (sliced) {
    writer().write_at(
        chunks_[piece].front().bytes.offset + first * entry.matrix().strip_bytes(manifest_.slices->shift()),
        strips.lsb);
    lsb_sums_[piece].update(strips.lsb);
  }
  GroupData& groups = groups_[piece];
  groups.scales.insert(groups.scales.end(), strips.scales.begin(), strips.scales.end());
  groups.zeros.insert(groups.zeros.end(), strips.zeros.begin(), strips.zeros.end());
  unsynced_ += strips.codes.size() + strips.lsb.size() + strips.scales.size() + strips.zeros.size();
}

std::string UnitWriter::end() {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Bytes at = pieces_[i].bytes.end() - groups_[i].scales.size() - groups_[i].zeros.size();
    for (const std::vector<std::byte>* data : {&groups_[i].scales, &groups_[i].zeros}) {
      if (data->empty()) continue;
      writer().write_at(at, *data);
      sums_[i].update(*data);
      at += data->size();
    }
  }
  // Writes zeros between the parts and up to the next multiple of 4096.
  std::vector<Region> parts;
  for (const PieceEntry& piece : pieces_) {
    if (piece.bytes.length > 0) parts.push_back(piece.bytes);
  }
  if (unit_.exp.length > 0) parts.push_back(unit_.exp);
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if (pieces_[i].encoding == Encoding::kSliced) parts.push_back(chunks_[i].front().bytes);
  std::sort(parts.begin(), parts.end(), [](const Region& a, const Region& b) { return a.offset < b.offset; });
  Bytes at = cursor();
  for (const Region& part : parts) {
    writer().write_zeros(at, part.offset - at);
    at = part.end();
  }
  const Bytes end = round_up(at, kRegionAlignment);
  writer().write_zeros(at, end - at);
  cursor() = end;

  for (Region* region : {&unit_.full, &unit_.sm, &unit_.exp, &unit_.msb, &unit_.lsb}) {
    if (region->length == 0) *region = {};
  }
  unit_.first_piece = static_cast<std::uint32_t>(manifest_.pieces.size());
  unit_.piece_count = static_cast<std::uint32_t>(pieces_.size());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    PieceEntry& piece = pieces_[i];
    piece.xxh3 = sums_[i].digest();
    if (piece.encoding == Encoding::kSliced) chunks_[i].front().xxh3 = lsb_sums_[i].digest();
    piece.first_chunk = static_cast<std::uint32_t>(manifest_.chunks.size());
    piece.chunk_count = static_cast<std::uint32_t>(chunks_[i].size());
    manifest_.chunks.insert(manifest_.chunks.end(), chunks_[i].begin(), chunks_[i].end());
    manifest_.pieces.push_back(piece);
  }
  std::string record;
  if (is_expert_) {
    manifest_.experts.push_back(unit_);
    record = "{\"expert\":";
    append_expert_json(record, manifest_, unit_);
  } else {
    dense_.push_back(unit_.first_piece);
    record = "{\"dense\":";
    append_piece_json(record, manifest_, manifest_.pieces.back());
  }
  record += "}";
  return record;
}

Manifest UnitWriter::in_order() const {
  Manifest ordered = manifest_;
  ordered.pieces.clear();
  for (const std::uint32_t piece : dense_) ordered.pieces.push_back(manifest_.pieces[piece]);
  ordered.dense_pieces = static_cast<std::uint32_t>(ordered.pieces.size());
  std::sort(ordered.experts.begin(), ordered.experts.end(), [](const ExpertEntry& a, const ExpertEntry& b) {
    return std::tie(a.layer, a.index) < std::tie(b.layer, b.index);
  });
  for (ExpertEntry& expert : ordered.experts) {
    const auto from = manifest_.pieces.begin() + expert.first_piece;
    expert.first_piece = static_cast<std::uint32_t>(ordered.pieces.size());
    ordered.pieces.insert(ordered.pieces.end(), from, from + expert.piece_count);
  }
  return ordered;
}

void UnitWriter::sync() {
  dense_writer_.sync();
  expert_writer_.sync();
  unsynced_ = 0;
}

}  // namespace sluice::store
