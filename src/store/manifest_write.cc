#include <fmt/format.h>

#include "base/append_format.h"
#include "base/hash.h"
#include "codec/exponents/plane_decoder.h"
#include "store/format.h"
#include "store/manifest.h"

namespace sluice::store {
namespace {

void put_region(std::string& out, std::string_view name, const Region& region, bool& first) {
  if (region.length == 0) return;
  append_format(out, "{}\"{}\":[{},{}]", first ? "" : ",", name, region.offset, region.length);
  first = false;
}

void put_source(std::string& out, const StoredSource& source) {
  out += "{\"path\":";
  append_json_string(out, source.path);
  append_format(out, ",\"size\":{},\"sha256\":\"{}\"", source.size, source.sha256);
  if (source.weights) {
    append_format(out, ",\"header\":[{},{},\"{}\"]", source.header.offset, source.header.length,
                  hex64(source.header_xxh3));
  }
  out += "}";
}

void put_tensor(std::string& out, const TensorInfo& info, const StoredTensor& place) {
  out += "[";
  append_json_string(out, info.name);
  append_format(out, ",\"{}\",[{}],{},{}]", dtype_name(info.dtype), fmt::join(info.shape, ","), place.source,
                place.offset);
}

// One entry per line, so that people and diff can read the file.
template <class Items, class Put>
void put_array(std::string& out, std::string_view name, const Items& items, Put&& put_item) {
  append_format(out, ",\n\"{}\":[", name);
  bool first = true;
  for (const auto& item : items) {
    out += first ? "\n" : ",\n";
    first = false;
    put_item(item);
  }
  out += "]";
}

void put_format_piece(std::string& out, const Manifest& manifest, const PieceEntry& piece) {
  append_format(out, "{{\"tensor\":{},\"elements\":[{},{}],\"format\":\"{}\",\"matrix\":[{},{}],\"planes\":[",
                piece.tensor, piece.first, piece.count, piece.format->name, piece.tiles.rows,
                piece.tiles.columns);
  for (std::uint32_t i = 0; i < piece.chunk_count; ++i) {
    const StoredChunk& plane = manifest.chunks[piece.first_chunk + i];
    append_format(out, "{}[{},{},{},{},{},\"{}\"]", i ? "," : "", plane.tensor, plane.first, plane.count,
                  plane.bytes.offset, plane.bytes.length, hex64(plane.xxh3));
  }
  out += "]}";
}

}  // namespace

void append_piece_json(std::string& out, const Manifest& manifest, const PieceEntry& piece) {
  static constexpr std::string_view kParts[] = {"raw", "sm", "msb", "int8"};  // by Encoding
  const bool split = piece.encoding == Encoding::kSplit;
  if (piece.encoding == Encoding::kFormat) return put_format_piece(out, manifest, piece);
  append_format(out, "{{\"tensor\":{},\"elements\":[{},{}]", piece.tensor, piece.first, piece.count);
  if (piece.tiled()) append_format(out, ",\"tiles\":[{},{}]", piece.tiles.rows, piece.tiles.columns);
  if (piece.has_matrix()) append_format(out, ",\"matrix\":[{},{}]", piece.tiles.rows, piece.tiles.columns);
  append_format(out, ",\"{}\":[{},{},\"{}\"]", kParts[static_cast<std::size_t>(piece.encoding)],
                piece.bytes.offset, piece.bytes.length, hex64(piece.xxh3));
  if (piece.encoding == Encoding::kSliced) {
    const StoredChunk& lsb = manifest.chunks[piece.first_chunk];
    append_format(out, ",\"lsb\":[{},{},\"{}\"]", lsb.bytes.offset, lsb.bytes.length, hex64(lsb.xxh3));
  }
  if (split) {
    out += ",\"chunks\":[";
    for (std::uint32_t i = 0; i < piece.chunk_count; ++i) {
      const StoredChunk& chunk = manifest.chunks[piece.first_chunk + i];
      append_format(out, "{}[{},{},{},{},{},\"{}\"]", i ? "," : "", chunk.bytes.offset, chunk.bytes.length,
                    chunk.first, chunk.count, chunk.coded ? 1 : 0, hex64(chunk.xxh3));
    }
    out += "]";
  }
  out += "}";
}

void append_expert_json(std::string& out, const Manifest& manifest, const ExpertEntry& expert) {
  append_format(out, "{{\"layer\":{},\"index\":{},\"file\":{},\"parts\":{{", expert.layer, expert.index,
                expert.file);
  bool first = true;
  put_region(out, "full", expert.full, first);
  put_region(out, "sm", expert.sm, first);
  put_region(out, "exp", expert.exp, first);
  put_region(out, "msb", expert.msb, first);
  put_region(out, "lsb", expert.lsb, first);
  out += "},\"pieces\":[";
  for (std::uint32_t i = 0; i < expert.piece_count; ++i) {
    if (i) out += ",";
    append_piece_json(out, manifest, manifest.pieces[expert.first_piece + i]);
  }
  out += "]}";
}

std::string write_manifest(const Manifest& manifest) {
  std::string out;
  const bool native = manifest.codec.name == codec::kNativeCodec, sliced = manifest.slices.has_value();
  std::vector<std::string_view> features;  // ascending
  if (manifest.has_formats()) features.push_back("\"formats\"");
  if (native) features.push_back("\"native\"");
  if (sliced) features.push_back("\"sliced\"");
  append_format(out, "{}{},\n\"requires\":[{}],\n\"architecture\":", kManifestStart, kFormatVersion,
                fmt::join(features, ","));
  append_json_string(out, manifest.architecture);
  append_format(out, ",\n\"family\":\"{}\"", family_name(manifest.family()));
  if (sliced)
    append_format(out, ",\n\"slices\":{{\"quantiser\":\"{}\",\"high\":{},\"low\":{}}}", codec::kAmat,
                  manifest.slices->high, manifest.slices->low);
  append_format(out, ",\n\"codec\":{{\"name\":\"{}\",\"level\":{},\"chunks\":{}}}", manifest.codec.name,
                manifest.codec.level, manifest.codec.chunks);
  put_array(out, "sources", manifest.sources, [&](const StoredSource& source) { put_source(out, source); });
  put_array(out, "empty_directories", manifest.empty_directories,
            [&](const std::string& path) { append_json_string(out, path); });
  put_array(out, "tensors", manifest.tensors, [&](const TensorInfo& info) {
    put_tensor(out, info, manifest.places[static_cast<std::size_t>(&info - manifest.tensors.data())]);
  });
  put_array(out, "data_files", manifest.data_files,
            [&](const DataFile& file) { append_format(out, "[\"{}\",{}]", file.name, file.size); });
  const std::span all(manifest.pieces);
  put_array(out, "dense", all.first(manifest.dense_pieces),
            [&](const PieceEntry& piece) { append_piece_json(out, manifest, piece); });
  put_array(out, "experts", manifest.experts,
            [&](const ExpertEntry& expert) { append_expert_json(out, manifest, expert); });
  append_checksum(out);
  return out;
}

void append_checksum(std::string& text) {
  const std::uint64_t sum = xxh3(std::as_bytes(std::span(text.data(), text.size())));
  text += kChecksumStart;
  text += hex64(sum);
  text += kChecksumEnd;
}

}  // namespace sluice::store
