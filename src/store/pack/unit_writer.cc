#include "store/pack/unit_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "store/format.h"
#include "store/piece_encoding.h"

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

void UnitWriter::begin_dense(const Planned& piece) {
  is_expert_ = false;
  begin(0, {&piece, 1});
}

void UnitWriter::begin_expert(std::uint32_t layer, std::uint32_t index, const std::vector<Planned>& pieces) {
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

void UnitWriter::begin(std::uint32_t file, std::span<const Planned> pieces) {
  unit_ = {};
  unit_.file = file;
  pieces_.clear();
  chunks_.assign(pieces.size(), {});
  sums_ = std::vector<Xxh3Stream>(pieces.size());
  run_sums_ = std::vector<std::vector<Xxh3Stream>>(pieces.size());
  groups_.assign(pieces.size(), {});
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    PieceEntry& piece = pieces_.emplace_back(pieces[i].entry);
    piece.file = file;
    const PieceEncoding& encoding = encoding_of(piece);
    if (encoding.has_bytes()) piece.bytes.length = plane_bytes(manifest_, piece, 0);
    if (encoding.runs == Runs::kOtherPlanes)
      chunks_[i].push_back({.bytes = {0, plane_bytes(manifest_, piece, 1)}});
    if (encoding.runs == Runs::kPlanes)
      for (const TensorRange& range : pieces[i].ranges)
        chunks_[i].push_back({.bytes = {0, plane_bytes(manifest_, piece, chunks_[i].size())},
                              .first = range.first,
                              .count = range.count,
                              .tensor = range.tensor});
    run_sums_[i] = std::vector<Xxh3Stream>(chunks_[i].size());
  }
  place_parts();
}

// Places region after region, in each the pieces one after another. The size of the exponents is known only
// at the end; no unit has both exponents and slices.
void UnitWriter::place_parts() {
  Bytes at = cursor();
  for (const auto& [name, region_of] : kExpertRegions) {
    Region& region = unit_.*region_of;
    region.offset = at;
    const auto place = [&](Region& bytes) {
      bytes.offset = bytes.length == 0 ? region.offset : round_up(at, kPieceAlignment);
      if (bytes.length > 0) at = bytes.end();
    };
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const PieceEncoding& encoding = encoding_of(pieces_[i]);
      if (encoding.region == region_of && encoding.has_bytes()) place(pieces_[i].bytes);
      if (encoding.runs_region != region_of) continue;
      for (StoredChunk& run : chunks_[i]) place(run.bytes);
    }
    region.length = at - region.offset;
    at = round_up(at, kRegionAlignment);
  }
}

void UnitWriter::put_raw(std::size_t piece, Bytes offset_in_piece, std::span<const std::byte> bytes) {
  writer().write_at(pieces_[piece].bytes.offset + offset_in_piece, bytes);
  sums_[piece].update(bytes);
  unsynced_ += bytes.size();
}

void UnitWriter::put_plane(std::size_t piece, std::size_t plane, Bytes offset_in_plane,
                           std::span<const std::byte> bytes) {
  writer().write_at(chunks_[piece][plane].bytes.offset + offset_in_plane, bytes);
  run_sums_[piece][plane].update(bytes);
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

void UnitWriter::put_quantised(std::size_t piece, const QuantisedStrips& strips) {
  GroupData& groups = groups_[piece];
  writer().write_at(pieces_[piece].bytes.offset + groups.codes, strips.codes);
  sums_[piece].update(strips.codes);
  groups.codes += strips.codes.size();
  if (!strips.lsb.empty()) {
    writer().write_at(chunks_[piece].front().bytes.offset + groups.lsb, strips.lsb);
    run_sums_[piece].front().update(strips.lsb);
    groups.lsb += strips.lsb.size();
  }
  if (groups.scales.empty()) {  // every strip has the same shares of the piece
    const Bytes all = pieces_[piece].bytes.length,
                of = strips.codes.size() + strips.scales.size() + strips.zeros.size();
    groups.scales.reserve(static_cast<std::size_t>(all * strips.scales.size() / of));
    groups.zeros.reserve(static_cast<std::size_t>(all * strips.zeros.size() / of));
  }
  groups.scales.insert(groups.scales.end(), strips.scales.begin(), strips.scales.end());
  groups.zeros.insert(groups.zeros.end(), strips.zeros.begin(), strips.zeros.end());
  unsynced_ += strips.codes.size() + strips.lsb.size() + strips.scales.size() + strips.zeros.size();
}

void UnitWriter::write_groups() {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Bytes at = pieces_[i].bytes.end() - groups_[i].scales.size() - groups_[i].zeros.size();
    for (const std::vector<std::byte>* data : {&groups_[i].scales, &groups_[i].zeros}) {
      if (data->empty()) continue;
      writer().write_at(at, *data);
      sums_[i].update(*data);
      at += data->size();
    }
  }
}

// Writes zeros between the parts and up to the next multiple of 4096.
void UnitWriter::write_padding() {
  std::vector<Region> parts;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].bytes.length > 0) parts.push_back(pieces_[i].bytes);
    for (const StoredChunk& run : chunks_[i]) parts.push_back(run.bytes);
  }
  std::sort(parts.begin(), parts.end(), [](const Region& a, const Region& b) { return a.offset < b.offset; });
  Bytes at = cursor();
  for (const Region& part : parts) {
    writer().write_zeros(at, part.offset - at);
    at = part.end();
  }
  const Bytes end = round_up(at, kRegionAlignment);
  writer().write_zeros(at, end - at);
  cursor() = end;
}

std::string UnitWriter::end() {
  write_groups();
  write_padding();
  for (const auto& [name, region] : kExpertRegions)
    if ((unit_.*region).length == 0) unit_.*region = {};
  unit_.first_piece = static_cast<std::uint32_t>(manifest_.pieces.size());
  unit_.piece_count = static_cast<std::uint32_t>(pieces_.size());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    PieceEntry& piece = pieces_[i];
    if (encoding_of(piece).has_bytes()) piece.xxh3 = sums_[i].digest();
    for (std::size_t run = 0; run < run_sums_[i].size(); ++run)
      chunks_[i][run].xxh3 = run_sums_[i][run].digest();
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

Manifest UnitWriter::take_in_order() {
  Manifest ordered = std::exchange(manifest_, {});
  const std::vector<PieceEntry> written = std::exchange(ordered.pieces, {});
  ordered.pieces.reserve(written.size());
  for (const std::uint32_t piece : dense_) ordered.pieces.push_back(written[piece]);
  ordered.dense_pieces = static_cast<std::uint32_t>(ordered.pieces.size());
  std::sort(ordered.experts.begin(), ordered.experts.end(), [](const ExpertEntry& a, const ExpertEntry& b) {
    return std::tie(a.layer, a.index) < std::tie(b.layer, b.index);
  });
  for (ExpertEntry& expert : ordered.experts) {
    const auto from = written.begin() + expert.first_piece;
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
