// A checkpoint as the engine reads it: named tensors, and the place of each piece of their bytes. Two kinds
// behind one interface: a Hugging Face directory (every piece raw, unaligned, no checksums) and a packed
// store.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "codec/native/tiles.h"
#include "codec/slices/int8_matrix.h"
#include "codec/slices/sliced_matrix.h"

namespace sluice::store {

struct TensorInfo {
  std::string name;
  DType dtype = DType::kBF16;
  std::vector<std::uint64_t> shape;
  std::uint64_t elements() const;  // product; checked against overflow when the file was read
  std::string shape_text() const;  // "[64, 1408, 2048]"
};

// A contiguous range of bytes of one of the checkpoint's weight files.
struct Extent {
  std::uint32_t file = 0;  // index into Checkpoint::weight_files()
  Bytes offset = 0;
  Bytes length = 0;
};

// A contiguous range of elements of one tensor that is stored, read and used separately: a whole dense
// tensor, or one expert's matrix (which may be a slice of a stacked 3-D tensor).
struct Piece {
  std::string tensor;
  std::uint64_t first_element = 0;
  std::uint64_t elements = 0;
};

// One independently coded run of exponents of a split piece (docs/store-format.md, "Exponent chunks").
struct ExponentChunk {
  Extent extent;  // where the store has it; the chunks of a piece are contiguous, not aligned
  std::uint64_t first_element = 0;  // within the piece
  std::uint64_t elements = 0;       // also the number of raw bytes
  bool coded = false;               // false: stored as raw exponent bytes
  std::uint64_t xxh3 = 0;           // over the stored bytes
};

enum class Encoding : std::uint8_t {
  kRaw,     // the tensor's own bytes
  kSplit,   // BF16 only: a sign+mantissa plane and exponent chunks (SPEC §1.2), flat or in tiles
  kSliced,  // a matrix of an expert in two slices of AMAT codes: rounded (SPEC §4.2)
  kInt8,    // a dense matrix in codes of 8 bits: also rounded
};

// Where and how one piece is stored.
struct StoredPiece {
  DType dtype = DType::kBF16;
  Encoding encoding = Encoding::kRaw;
  std::uint64_t elements = 0;
  Extent raw;              // kRaw
  Extent sm;               // kSplit: one byte for every element, or for every place of the tiles
  codec::TileShape tiles;  // for a matrix in tiles; chunks then count places, not elements
  // The tiles have the tensor's columns: kernels can multiply with them directly.
  bool own_columns = false;
  std::optional<std::uint64_t> xxh3;     // over `raw`, `sm`, `msb` or `int8`; empty in a directory
  std::vector<ExponentChunk> exponents;  // kSplit
  codec::CellShape matrix;               // kSliced, kInt8
  Extent msb, lsb;                       // kSliced, laid out by codec::SlicedShape{matrix, bits of the store}
  std::uint64_t lsb_xxh3 = 0;            // `xxh3` covers `msb`
  Extent int8;                           // kInt8, laid out by codec::Int8Shape{matrix}
  bool tiled() const { return tiles.rows > 0; }
};

// The kinds of parts that a store's experts have (docs/store-format.md).
enum class Family : std::uint8_t { kRaw, kSplit, kSliced };
std::string_view family_name(Family family);  // "raw" "split" "sliced"

// Immutable after opening; thread-safe.
class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  virtual const std::string& path() const = 0;  // as the user gave it
  virtual bool packed() const = 0;
  virtual const std::vector<std::string>& weight_files() const = 0;  // paths that Extent::file indexes
  virtual const std::vector<TensorInfo>& tensors() const = 0;        // all of them, ascending by name
  virtual const TensorInfo* find(std::string_view name) const = 0;   // null if absent
  // Error(kInvalid) if the tensor or range does not exist. In a store the range must be one that was packed:
  // pieces are packed as the plan named them, and a whole tensor only if it was packed as one piece.
  virtual StoredPiece locate(const Piece& piece) const = 0;
  // The pieces in which a tensor is stored, ascending; a directory stores each tensor in one piece.
  // Error(kInvalid) if the tensor does not exist.
  virtual std::vector<Piece> pieces_of(std::string_view tensor) const = 0;
  virtual std::string codec() const = 0;  // "none" "zstd" "lz4" "native"; a directory: "none"
  virtual std::optional<codec::SliceBits> slices() const { return std::nullopt; }  // for family `sliced`
  Family family() const;
  // Path of another file of the source ("config.json"); empty if the source had no such file. A store first
  // compares the file with its SHA-256: Error(kCorrupt).
  virtual std::optional<std::string> find_file(std::string_view relative) const = 0;
  virtual std::string files_directory() const = 0;  // where those files lie
  // In a store, compares all files that describe the model (.json, .txt, .model) with their SHA-256:
  // Error(kCorrupt). Call it before reading them in another way than by find_file().
  virtual void check_files() const = 0;
};

}  // namespace sluice::store
