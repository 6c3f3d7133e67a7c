// How a matrix is stored: a table with one row for each format, and the one reference to a stored matrix. Who
// reads, checks, sizes or multiplies a matrix asks the row; docs/adding-a-format.md adds one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/dtype.h"
#include "codec/slices/slice_bits.h"
#include "codec/slices/sliced_matrix.h"
#include "device/address.h"

namespace sluice::codec {

struct MatrixShape {
  std::uint64_t rows = 0, columns = 0;
  constexpr std::uint64_t elements() const { return rows * columns; }
  bool operator==(const MatrixShape&) const = default;
};

// The form of activations that products with a format read. kernels/products/input_form.h has a row for each:
// its floats, and how they are made.
enum class InputForm : std::uint8_t {
  kWords,   // arranged as matmul.h says; rounded to BF16 where the context's products round
  kCells,   // arranged as sliced_matmul.h says, or in codes of 8 bits
  kExact,   // arranged as matmul.h says, and never rounded: for formats whose values are no BF16 words
  kBlocks,  // as kExact, or in codes of 8 bits (coded_blocks.h)
};
inline constexpr std::size_t kInputForms = 4;

// The two regions of an expert, which are read and kept apart from each other (docs/experts.md).
enum class PlaneRegion : std::uint8_t {
  kBase,  // parts full, sm and msb
  kRest,  // parts exp and lsb
};

// One array of bytes of a stored matrix. A plane is stored, read and checked as one run, unless its length
// depends on its content: then it is a sequence of chunks (PlaneChunk).
struct Plane {
  std::string_view name;
  Bytes (*bytes)(MatrixShape shape) = nullptr;  // null: the content decides
  PlaneRegion region = PlaneRegion::kBase;
};
inline constexpr std::size_t kMostPlanes = 4;

// Bytes of a plane that has kBytes for each block of kRows × kColumns elements, ragged ones included.
template <std::uint64_t kRows, std::uint64_t kColumns, Bytes kBytes>
constexpr Bytes bytes_in_blocks(MatrixShape shape) {
  return (shape.rows + kRows - 1) / kRows * ((shape.columns + kColumns - 1) / kColumns) * kBytes;
}

struct MatrixRef;

// One row of the table. Rows are constants that outlive everything; their addresses are the key, also of
// kernels/products/format_kernels.h. A checkpoint may also name a row that is not in matrix_formats(), as
// tests do.
struct MatrixFormat {
  std::string_view name;                       // in manifests and messages
  std::array<Plane, kMostPlanes> planes = {};  // in order; those behind the last have no name
  MatrixShape block = {1, 1};                  // elements that share a scale, or are coded together
  bool ragged = true;                          // the last blocks of rows and columns may be cut short
  std::optional<InputForm> input = {};         // empty: no kernel reads the format; it becomes words first
  std::optional<DType> words = {};             // the one plane holds elements of this type, row after row
  std::optional<SliceBits> slices = {};        // the planes are slices of codes of so many bits
  // Looks for content that no such matrix has (a scale that is NaN), in host memory. Error(kCorrupt) without
  // a place, which the caller adds. Null: all content is legal, or its decoder checks it.
  void (*check)(const MatrixRef& matrix) = nullptr;
  // Row `row` of a matrix in host memory as the numbers that it stands for, shape.columns of them. Plain
  // code: it is the definition of the format. Null: nobody has a matrix in this format in memory.
  void (*row)(const MatrixRef& matrix, std::uint64_t row, float* out) = nullptr;

  std::size_t plane_count() const;
  // Every plane's length follows from the shape.
  bool fixed_size() const;
  // REQUIRES: the length follows from the shape.
  Bytes plane_bytes(MatrixShape shape, std::size_t plane) const;
  // Bytes of all planes. REQUIRES: fixed_size().
  Bytes bytes(MatrixShape shape) const;
  // Whether a matrix of this shape can be stored so.
  bool fits(MatrixShape shape) const;
};

// A run of a plane whose length depends on its content: coded exponents of whole groups.
struct PlaneChunk {
  Bytes place = 0, bytes = 0;          // from the plane's address on
  std::uint64_t first = 0, count = 0;  // elements of the matrix, or places of its tiles
  std::uint64_t xxh3 = 0;              // the checksum of the bytes
  bool coded = false;                  // false: the bytes are exponents as they are
};

// A stored matrix, or the view of it that is meant. Non-owning; no alignment is demanded of any plane.
struct MatrixRef {
  const MatrixFormat* format = nullptr;  // null: no matrix
  MatrixShape shape = {};
  std::array<device::Address, kMostPlanes> planes = {};  // an absent one is the address of nothing
  std::span<const PlaneChunk> chunks = {};  // chunks of the plane that has some, ascending, without gaps
  SliceView view = SliceView::kHigh;        // for slices: which numbers the codes stand for
  bool empty() const { return format == nullptr; }
};

// The formats of this program.
extern const MatrixFormat kFormatF32, kFormatF16, kFormatBf16;
// Sign+mantissa bytes and coded exponents, in the order of elements; only stored, never computed with.
extern const MatrixFormat kFormatSplit;
// The same in tiles, as codec `native` stores them; `shape` is that of the tiles.
extern const MatrixFormat kFormatPacked;
extern const MatrixFormat kFormatSlices84, kFormatSlices63, kFormatSlices42;
extern const MatrixFormat kFormatInt8;
// Blocks of quantised elements, as GGUF files have them, and MXFP4 in two planes (codec/blocks).
extern const MatrixFormat kFormatQ40, kFormatQ41, kFormatQ50, kFormatQ51, kFormatQ80;
extern const MatrixFormat kFormatQ2K, kFormatQ3K, kFormatQ4K, kFormatQ5K, kFormatQ6K;
extern const MatrixFormat kFormatIq4Nl, kFormatIq4Xs, kFormatMxfp4, kFormatMxfp4Pair;
std::span<const MatrixFormat* const> matrix_formats();

// Null for an unknown name. `more`: rows beyond those of this program.
const MatrixFormat* find_format(std::string_view name, std::span<const MatrixFormat* const> more = {});
// The format of words of a type; null for types that are not computed with.
const MatrixFormat* word_format(DType dtype);
// The format of slices with these bits, one of kStoredSliceBits.
const MatrixFormat& slices_format(SliceBits bits);

// A matrix of words in host memory, rows contiguous. REQUIRES: BF16, F16 or F32.
MatrixRef word_matrix(const std::byte* data, DType dtype, std::uint64_t rows, std::uint64_t columns);
// Rows [first, first + count) of a matrix whose rows share no block, and whose length follows from its shape.
MatrixRef rows_of(const MatrixRef& matrix, std::uint64_t first, std::uint64_t count);
// Slices in host memory as a reference, and back.
MatrixRef sliced_ref(const SlicedView& slices, SliceView view);
SlicedView slices_of(const MatrixRef& matrix);
// A matrix in codes of 8 bits in host memory.
MatrixRef int8_ref(MatrixShape shape, const std::byte* data);

// Row `row` as floats, in host memory; our own bug if there is no such row.
void row_to_float(const MatrixRef& matrix, std::uint64_t row, float* out);

}  // namespace sluice::codec
