// Pieces and experts in the text of the manifest and of the journal.
#include <fmt/format.h>

#include <array>

#include "base/append_format.h"
#include "base/hash.h"
#include "store/json_members.h"
#include "store/manifest.h"
#include "store/piece_encoding.h"

namespace sluice::store {
namespace {

// ---- Reading the members of a piece

void read_tensor_index(JsonReader& json, Manifest&, PieceEntry& piece) { piece.tensor = read_u32(json); }

void read_elements(JsonReader& json, Manifest&, PieceEntry& piece) {
  const Region range = read_region(json);
  piece.first = range.offset;
  piece.count = range.length;
}

void read_bytes(JsonReader& json, Manifest&, PieceEntry& piece) {
  piece.bytes = read_checked_region(json, piece.xxh3);
}

StoredChunk read_chunk(JsonReader& json) {
  JsonTuple tuple(json);
  StoredChunk chunk;
  chunk.bytes.offset = tuple.next().read_number();
  chunk.bytes.length = tuple.next().read_number();
  chunk.first = tuple.next().read_number();
  chunk.count = tuple.next().read_number();
  const std::uint64_t coded = tuple.next().read_number();
  if (coded > 1)
    throw json.error("unknown coding of a chunk").expected("0 or 1").found(fmt::format("{}", coded));
  chunk.coded = coded == 1;
  chunk.xxh3 = read_xxh3(tuple.next());
  tuple.end();
  return chunk;
}

StoredChunk read_plane(JsonReader& json) {
  JsonTuple tuple(json);
  StoredChunk plane;
  plane.tensor = read_u32(tuple.next());
  plane.first = tuple.next().read_number();
  plane.count = tuple.next().read_number();
  plane.bytes.offset = tuple.next().read_number();
  plane.bytes.length = tuple.next().read_number();
  plane.xxh3 = read_xxh3(tuple.next());
  tuple.end();
  return plane;
}

template <StoredChunk (*kRead)(JsonReader&)>
void read_runs(JsonReader& json, Manifest& manifest, PieceEntry&) {
  for (json.begin_array(); json.next_item();) manifest.chunks.push_back(kRead(json));
}

void read_other_plane(JsonReader& json, Manifest& manifest, PieceEntry&) {
  StoredChunk plane;
  plane.bytes = read_checked_region(json, plane.xxh3);
  manifest.chunks.push_back(plane);
}

void read_shape(JsonReader& json, PieceEntry& piece, std::string_view empty) {
  const Region shape = read_region(json);
  piece.tiles = {shape.offset, shape.length};
  if (piece.tiles.rows == 0 || piece.tiles.columns == 0) throw json.error(empty);
}
void read_tiles(JsonReader& json, Manifest&, PieceEntry& piece) {
  read_shape(json, piece, "tiles of nothing");
}
void read_matrix(JsonReader& json, Manifest&, PieceEntry& piece) {
  read_shape(json, piece, "a matrix of nothing");
}

void read_format(JsonReader& json, Manifest& manifest, PieceEntry& piece) {
  const std::string name = json.read_string();
  piece.format = codec::find_format(name, manifest.more_formats);
  if (piece.format == nullptr || !piece.format->fixed_size()) {
    throw Error(ErrorKind::kUnsupported,
                "the store has matrices in a format that this version of Sluice does not know")
        .in(json.error("").where(), json.value_offset())
        .found(in_quotes(name))
        .fix("use a newer version of Sluice");
  }
}

// ---- Writing their values

void put_tensor_index(std::string& out, const Manifest&, const PieceEntry& piece) {
  append_format(out, "{}", piece.tensor);
}

void put_elements(std::string& out, const Manifest&, const PieceEntry& piece) {
  append_format(out, "[{},{}]", piece.first, piece.count);
}

void put_extent(std::string& out, const Region& bytes, std::uint64_t xxh3) {
  append_format(out, "[{},{},\"{}\"]", bytes.offset, bytes.length, hex64(xxh3));
}

void put_bytes(std::string& out, const Manifest&, const PieceEntry& piece) {
  put_extent(out, piece.bytes, piece.xxh3);
}

void put_other_plane(std::string& out, const Manifest& manifest, const PieceEntry& piece) {
  const StoredChunk& plane = runs_of(manifest, piece).front();
  put_extent(out, plane.bytes, plane.xxh3);
}

void put_chunk(std::string& out, const StoredChunk& chunk) {
  append_format(out, "[{},{},{},{},{},\"{}\"]", chunk.bytes.offset, chunk.bytes.length, chunk.first,
                chunk.count, chunk.coded ? 1 : 0, hex64(chunk.xxh3));
}

void put_plane(std::string& out, const StoredChunk& plane) {
  append_format(out, "[{},{},{},{},{},\"{}\"]", plane.tensor, plane.first, plane.count, plane.bytes.offset,
                plane.bytes.length, hex64(plane.xxh3));
}

template <void (*kPut)(std::string&, const StoredChunk&)>
void put_runs(std::string& out, const Manifest& manifest, const PieceEntry& piece) {
  const char* before = "[";
  for (const StoredChunk& run : runs_of(manifest, piece)) {
    out += before;
    kPut(out, run);
    before = ",";
  }
  if (piece.chunk_count == 0) out += before;
  out += "]";
}

void put_shape(std::string& out, const Manifest&, const PieceEntry& piece) {
  append_format(out, "[{},{}]", piece.tiles.rows, piece.tiles.columns);
}

void put_format(std::string& out, const Manifest&, const PieceEntry& piece) {
  append_format(out, "\"{}\"", piece.format->name);
}

// ---- The table

struct MemberJson {
  std::string_view name;
  void (*read)(JsonReader& json, Manifest& manifest, PieceEntry& piece);
  void (*put)(std::string& out, const Manifest& manifest, const PieceEntry& piece);
};

// By PieceMember.
constexpr std::array<MemberJson, kPieceMembers> kMembers = {{
    {"tensor", read_tensor_index, put_tensor_index},
    {"elements", read_elements, put_elements},
    {"raw", read_bytes, put_bytes},
    {"sm", read_bytes, put_bytes},
    {"msb", read_bytes, put_bytes},
    {"int8", read_bytes, put_bytes},
    {"chunks", read_runs<read_chunk>, put_runs<put_chunk>},
    {"tiles", read_tiles, put_shape},
    {"matrix", read_matrix, put_shape},
    {"lsb", read_other_plane, put_other_plane},
    {"format", read_format, put_format},
    {"planes", read_runs<read_plane>, put_runs<put_plane>},
}};

template <class Rows>
constexpr auto names_of(const Rows& rows) {
  std::array<std::string_view, std::tuple_size_v<Rows>> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = rows[i].name;
  return names;
}
constexpr auto kMemberNames = names_of(kMembers);
constexpr auto kRegionNames = names_of(kExpertRegions);

}  // namespace

void append_piece_json(std::string& out, const Manifest& manifest, const PieceEntry& piece) {
  const auto put = [&](char before, PieceMember member) {
    const MemberJson& row = kMembers[static_cast<std::size_t>(member)];
    append_format(out, "{}\"{}\":", before, row.name);
    row.put(out, manifest, piece);
  };
  put('{', PieceMember::kTensor);
  put(',', PieceMember::kElements);
  for (const PieceMember member : encoding_of(piece).members)
    if (member != PieceMember::kTiles || piece.tiled()) put(',', member);
  out += "}";
}

void read_piece_json(JsonReader& json, Manifest& manifest, std::uint32_t file) {
  JsonMembers members(kMemberNames);
  PieceEntry piece;
  piece.file = file;
  piece.first_chunk = static_cast<std::uint32_t>(manifest.chunks.size());
  std::uint32_t seen = 0;  // bit i: PieceMember i
  std::string key;
  json.begin_object();
  while (json.next_key(key)) {
    const std::size_t member = members.take(json, key);
    seen |= std::uint32_t{1} << member;
    kMembers[member].read(json, manifest, piece);
  }
  members.need(json, 2);
  const std::optional<Encoding> encoding = encoding_with(seen);
  if (!encoding) {
    throw json.error("a piece is not stored in one way")
        .expected(
            "\"raw\"; \"sm\" and \"chunks\"; \"matrix\", \"msb\" and \"lsb\"; \"matrix\" and \"int8\"; or "
            "\"format\", \"matrix\" and \"planes\"");
  }
  piece.encoding = *encoding;
  piece.chunk_count = static_cast<std::uint32_t>(manifest.chunks.size()) - piece.first_chunk;
  manifest.pieces.push_back(piece);
}

void append_expert_json(std::string& out, const Manifest& manifest, const ExpertEntry& expert) {
  append_format(out, "{{\"layer\":{},\"index\":{},\"file\":{},\"parts\":{{", expert.layer, expert.index,
                expert.file);
  const char* before = "";
  for (const auto& [name, at] : kExpertRegions) {
    const Region& region = expert.*at;
    if (region.length == 0) continue;
    append_format(out, "{}\"{}\":[{},{}]", before, name, region.offset, region.length);
    before = ",";
  }
  out += "},\"pieces\":[";
  for (std::uint32_t i = 0; i < expert.piece_count; ++i) {
    if (i) out += ",";
    append_piece_json(out, manifest, manifest.pieces[expert.first_piece + i]);
  }
  out += "]}";
}

void read_expert_json(JsonReader& json, Manifest& manifest) {
  static constexpr std::array<std::string_view, 5> kNames = {"layer", "index", "file", "parts", "pieces"};
  JsonMembers members(kNames);
  ExpertEntry expert;
  expert.first_piece = static_cast<std::uint32_t>(manifest.pieces.size());
  std::string key;
  json.begin_object();
  while (json.next_key(key)) {
    switch (members.take(json, key)) {
      case 0:
        expert.layer = read_u32(json);
        break;
      case 1:
        expert.index = read_u32(json);
        break;
      case 2:
        expert.file = read_u32(json);
        break;
      case 3: {
        JsonMembers parts(kRegionNames);
        json.begin_object();
        while (json.next_key(key)) {
          Region& part = expert.*kExpertRegions[parts.take(json, key)].region;
          part = read_region(json);
          if (part.length == 0) throw json.error("a part is empty");
        }
        break;
      }
      case 4:
        for (json.begin_array(); json.next_item();) read_piece_json(json, manifest, 0);
        break;
    }
  }
  members.need(json);
  expert.piece_count = static_cast<std::uint32_t>(manifest.pieces.size()) - expert.first_piece;
  for (std::uint32_t i = 0; i < expert.piece_count; ++i)
    manifest.pieces[expert.first_piece + i].file = expert.file;
  manifest.experts.push_back(expert);
}

}  // namespace sluice::store
