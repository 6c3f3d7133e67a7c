#include <fmt/format.h>

#include "base/append_format.h"
#include "base/hash.h"
#include "codec/exponents/plane_decoder.h"
#include "store/format.h"
#include "store/manifest.h"

namespace sluice::store {
namespace {

void put_source(std::string& out, const StoredSource& source) {
  out += "{\"path\":";
  append_json_string(out, source.path);
  append_format(out, ",\"size\":{},\"sha256\":\"{}\"", source.size, source.sha256);
  if (source.weights) {
    append_format(out, ",\"{}\":[{},{},\"{}\"]", source.gguf ? "gguf" : "header", source.header.offset,
                  source.header.length, hex64(source.header_xxh3));
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

}  // namespace

std::string write_manifest(const Manifest& manifest) {
  std::string out;
  const bool native = manifest.codec.name == codec::kNativeCodec, sliced = manifest.slices.has_value();
  std::vector<std::string_view> features;  // ascending
  if (manifest.has_formats()) features.push_back("\"formats\"");
  if (manifest.first_gguf() != nullptr) features.push_back("\"gguf\"");
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
