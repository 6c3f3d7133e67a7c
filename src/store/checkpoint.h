// A checkpoint as the engine reads it: named tensors, and the place of each piece of their bytes. Three kinds
// behind one interface: a Hugging Face directory and a GGUF file (every piece raw, unaligned, no checksums),
// and a packed store.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "codec/matrix_format.h"
#include "codec/native/tiles.h"
#include "codec/slices/slice_cells.h"

namespace sluice::store {

struct GgufHeader;  // store/source/gguf.h

struct TensorInfo {
  std::string name;
  DType dtype = DType::kBF16;
  std::vector<std::uint64_t> shape;
  // How the tensor's source has its matrices, if not as words of `dtype`; null: as words.
  const codec::MatrixFormat* format = nullptr;
  std::uint64_t elements() const;                // product; checked against overflow when the file was read
  Bytes bytes_of(std::uint64_t elements) const;  // so many of its elements, as words of `dtype`
  // The size of all elements. None if these, or a product of the dimensions that are not 0, pass 2^64.
  std::optional<Bytes> checked_bytes() const;
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

// One plane of a piece (codec::MatrixFormat), unless it is a sequence of chunks.
struct StoredPlane {
  Extent extent;
  std::optional<std::uint64_t> xxh3;  // the checksum of its bytes; empty in a directory
};

// Where and how one piece is stored.
struct StoredPiece {
  // Null: elements of a type that nobody computes with, in one plane as the tensor has them.
  const codec::MatrixFormat* format = nullptr;
  DType dtype = DType::kBF16;  // the tensor's; the words that a piece with coded exponents becomes
  std::uint64_t elements = 0;  // elements of the tensor
  codec::MatrixShape shape;    // that the planes have: tiles may have other columns than the tensor
  std::array<StoredPlane, codec::kMostPlanes> planes;  // by the format; a plane of chunks is empty
  std::vector<ExponentChunk> exponents;  // for formats `split` and `packed`; those of `packed` count places
  // The tiles have the tensor's columns: kernels can multiply with them directly.
  bool own_columns = false;

  // Exponents must be decoded before the piece is words.
  bool coded() const { return format != nullptr && !format->fixed_size(); }
  bool tiled() const { return format == &codec::kFormatPacked; }
  codec::TileShape tiles() const { return {shape.rows, shape.columns}; }
  codec::CellShape cells() const { return {shape.rows, shape.columns}; }
  // The tensor's own bytes.
  bool raw() const { return format == nullptr || format->words; }
  std::size_t plane_count() const { return format == nullptr ? 1 : format->plane_count(); }
  const Extent& first() const { return planes[0].extent; }
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
  // The keys of a GGUF file, which describe the model in place of such files; read anew at each call, since
  // vocabularies are large. Null: the checkpoint is none.
  virtual std::shared_ptr<const GgufHeader> gguf() const { return nullptr; }
  // In a store, compares all files that describe the model (.json, .txt, .model, .jinja) with their SHA-256:
  // Error(kCorrupt). Call it before reading them in another way than by find_file().
  virtual void check_files() const = 0;
};

}  // namespace sluice::store
