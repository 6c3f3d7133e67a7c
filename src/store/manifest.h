// The manifest of a packed store in memory (docs/store-format.md, section 2), compact: indices instead of
// names, one array for all pieces and one for all chunks. A model of 18,432 experts takes about 10 MB.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "store/checkpoint.h"
#include "store/json_reader.h"

namespace sluice::store {

struct Region {
  Bytes offset = 0;
  Bytes length = 0;
  Bytes end() const { return offset + length; }
  bool operator==(const Region&) const = default;
};

struct StoredSource {
  std::string path;  // relative
  Bytes size = 0;
  std::string sha256;    // 64 hexadecimal digits
  bool weights = false;  // safetensors or GGUF; then the members below are set
  Region header = {};    // where headers.bin has the bytes of the file that belong to no tensor (rest_of)
  std::uint64_t header_xxh3 = 0;
  bool gguf = false;
};

struct StoredTensor {  // parallel to TensorInfo
  std::uint32_t source = 0;
  Bytes offset = 0;  // in that file
};

struct StoredChunk {
  Region bytes;
  std::uint64_t first = 0, count = 0;  // for exponents: elements (in tiles: places) of the piece
  std::uint64_t xxh3 = 0;
  bool coded = false;
  // The tensor that a plane of a piece in a format was taken from; `first` and `count` are elements of it.
  std::uint32_t tensor = 0;
};

// How the manifest writes a piece; piece_encoding.h has a row for each way.
enum class Encoding : std::uint8_t {
  kRaw,     // `raw`: the tensor's own bytes
  kSplit,   // `sm` and `chunks`, BF16 only: a sign+mantissa plane and exponent chunks, flat or in tiles
  kSliced,  // `msb` and `lsb`: a matrix of an expert in two slices of AMAT codes, rounded
  kInt8,    // `int8`: a dense matrix in codes of 8 bits, also rounded
  kFormat,  // `format` and `planes`: a matrix as its source has it, in a format of codec/matrix_format.h
};

struct PieceEntry {
  std::uint32_t tensor = 0;
  std::uint32_t file = 0;              // index into data_files
  std::uint64_t first = 0, count = 0;  // elements of the tensor
  Encoding encoding = Encoding::kRaw;
  // For split pieces of codec native, and for pieces with a matrix its rows and columns; else {}.
  codec::TileShape tiles{};
  Region bytes{};  // `raw`, `sm`, `msb` or `int8`; empty for a piece in a format
  std::uint64_t xxh3 = 0;
  const codec::MatrixFormat* format = nullptr;  // kFormat
  // Its runs: what they are, its encoding says (piece_encoding.h).
  std::uint32_t first_chunk = 0, chunk_count = 0;
  bool tiled() const { return encoding == Encoding::kSplit && tiles.rows > 0; }
};

struct ExpertEntry {
  std::uint32_t layer = 0, index = 0;
  std::uint32_t file = 0;
  Region full{}, sm{}, exp{}, msb{}, lsb{};  // kExpertRegions; length 0: no such region
  std::uint32_t first_piece = 0, piece_count = 0;
};

// The regions of an expert in the order of its file, as the manifest names them.
struct ExpertRegion {
  std::string_view name;
  Region ExpertEntry::*region;
};
inline constexpr std::array<ExpertRegion, 5> kExpertRegions = {{{"full", &ExpertEntry::full},
                                                                {"sm", &ExpertEntry::sm},
                                                                {"exp", &ExpertEntry::exp},
                                                                {"msb", &ExpertEntry::msb},
                                                                {"lsb", &ExpertEntry::lsb}}};

struct DataFile {
  std::string name;
  Bytes size = 0;
};

struct CodecChoice {
  std::string name = "none";
  std::uint64_t level = 0;
  std::uint64_t chunks = 0;
};

struct Manifest {
  std::string architecture;
  CodecChoice codec;
  // Set for family sliced; otherwise the family is raw if the codec is "none", else split
  std::optional<codec::SliceBits> slices;
  std::vector<StoredSource> sources;
  std::vector<std::string> empty_directories;
  std::vector<TensorInfo> tensors;   // ascending by name
  std::vector<StoredTensor> places;  // parallel to tensors
  std::vector<DataFile> data_files;
  std::vector<PieceEntry> pieces;  // first the dense pieces, then those of experts[0], experts[1] …
  std::vector<StoredChunk> chunks;
  std::vector<ExpertEntry> experts;  // ascending by (layer, index)
  std::uint32_t dense_pieces = 0;
  // Formats that pieces may name beside codec::matrix_formats(). Must outlive the manifest.
  std::span<const codec::MatrixFormat* const> more_formats;

  Bytes headers_bytes() const;  // size of headers.bin
  bool has_formats() const;     // some piece is in a format
  // The GGUF file that describes the model; null: there is none.
  const StoredSource* first_gguf() const;
  Family family() const {
    return slices ? Family::kSliced : codec.name == "none" ? Family::kRaw : Family::kSplit;
  }
};

// What of a weight file belongs to no tensor: its ranges there, ascending, none empty. Their bytes lie back
// to back in headers.bin. REQUIRES: sizes that do not overflow, and tensors that do not overlap.
std::vector<Region> rest_of(const Manifest& manifest, std::size_t source);

std::string expert_file_name(std::size_t number);  // "experts-00000.bin"

// The text of manifest.json, checksum included.
std::string write_manifest(const Manifest& manifest);

// Parses and checks everything that needs no other file (every range, the cover of every tensor, the
// layout of section 3). `name` appears in errors: (kUnsupported) for another version or an unknown feature;
// (kCorrupt) for a wrong checksum; (kInvalid) otherwise.
Manifest parse_manifest(std::string_view text, const std::string& name,
                        std::span<const codec::MatrixFormat* const> more_formats = {});

// The first characters of an unexpected file, for a message.
std::string in_quotes(std::string_view text);
// The checksum at the end of the text, without recomputing it; Error(kCorrupt) if the text has none.
std::uint64_t stated_checksum(std::string_view text, const std::string& name);
// Error(kCorrupt) unless the text ends with the checksum of all text before it. For manifests and sidecars.
void check_checksum(std::string_view text, const std::string& name);
// Appends the checksum and the end of the file.
void append_checksum(std::string& text);

// JSON fragments that the journal shares. Reading appends to pieces and chunks (and experts) of `manifest`;
// `file` is the data file of dense pieces.
void append_piece_json(std::string& out, const Manifest& manifest, const PieceEntry& piece);
void append_expert_json(std::string& out, const Manifest& manifest, const ExpertEntry& expert);
void read_piece_json(JsonReader& json, Manifest& manifest, std::uint32_t file);
void read_expert_json(JsonReader& json, Manifest& manifest);

// The checks of parse_manifest that need no text. Error(kInvalid).
void check_manifest(const Manifest& manifest, const std::string& name);

}  // namespace sluice::store
