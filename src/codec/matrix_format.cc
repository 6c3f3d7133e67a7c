#include "codec/matrix_format.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/float16.h"
#include "codec/native/native_chunk.h"
#include "codec/native/tiles.h"
#include "codec/slices/int8_matrix.h"
#include "device/space.h"

namespace sluice::codec {
namespace {

const std::byte* host(const MatrixRef& matrix, std::size_t plane) {
  return device::host_space().pointer(matrix.planes[plane]);
}

float f32(const std::byte* at) {
  float value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}
template <float (*kToFloat)(std::uint16_t)>
float half(const std::byte* at) {
  std::uint16_t word;
  std::memcpy(&word, at, sizeof(word));
  return kToFloat(word);
}

template <Bytes kBytes, float (*kElement)(const std::byte*)>
void word_row(const MatrixRef& matrix, std::uint64_t row, float* out) {
  const std::byte* const first = host(matrix, 0) + row * matrix.shape.columns * kBytes;
  for (std::uint64_t c = 0; c < matrix.shape.columns; ++c) out[c] = kElement(first + c * kBytes);
}

template <Bytes kBytes, float (*kElement)(const std::byte*)>
constexpr MatrixFormat words(std::string_view name, DType dtype) {
  MatrixFormat format;
  format.name = name;
  format.planes = {{{"words", bytes_in_blocks<1, 1, kBytes>}}};
  format.input = InputForm::kWords;
  format.words = dtype;
  format.row = word_row<kBytes, kElement>;
  return format;
}

Bytes element_plane(MatrixShape shape) { return shape.elements(); }
Bytes tile_plane(MatrixShape shape) { return TileShape{shape.rows, shape.columns}.places(); }

// Decodes the whole group of the row.
void packed_row(const MatrixRef& matrix, std::uint64_t row, float* out) {
  const TileShape tiles{matrix.shape.rows, matrix.shape.columns};
  const std::uint64_t group = row / kTileRows, place = group * tiles.group_places();
  const auto chunk = std::ranges::find_if(
      matrix.chunks, [&](const PlaneChunk& c) { return place >= c.first && place < c.first + c.count; });
  SLUICE_CHECK(chunk != matrix.chunks.end(), std::to_string(row));
  const std::byte* const planes = host(matrix, 0) + place;
  const std::byte* const exponents = host(matrix, 1) + chunk->place;
  const std::uint64_t rows = std::min<std::uint64_t>(kTileRows, tiles.rows - group * kTileRows);
  std::vector<std::byte> decoded(rows * tiles.columns * 2), scratch(native_scratch_bytes(tiles.blocks()));
  const NativeKernels& native = native_kernels(Isa::kScalar);
  if (chunk->coded) {
    const NativeChunk coded({exponents, chunk->bytes}, {chunk->count / tiles.group_places(), tiles.blocks()});
    const bool sound =
        native.merge(coded.group((place - chunk->first) / tiles.group_places()), scratch.data(), planes, rows,
                     tiles.columns, decoded.data(), Stores::kCached);
    if (!sound) throw Error(ErrorKind::kCorrupt, "exponents are no valid encoding by native");
  } else {
    native.merge_raw(exponents + (place - chunk->first), planes, tiles.blocks(), rows, tiles.columns,
                     decoded.data(), Stores::kCached);
  }
  for (std::uint64_t c = 0; c < tiles.columns; ++c)
    out[c] = half<bf16_to_float>(decoded.data() + 2 * (row % kTileRows * tiles.columns + c));
}

// Codes in slices (SPEC 4.2). The scales and zero points lie behind the codes of the plane `msb`.
template <unsigned kHigh, unsigned kLow>
struct Slices {
  static constexpr SlicedShape shape(MatrixShape matrix) {
    return {{matrix.rows, matrix.columns}, {kHigh, kLow}};
  }
  static Bytes msb(MatrixShape matrix) { return shape(matrix).msb_bytes(); }
  static Bytes lsb(MatrixShape matrix) { return shape(matrix).lsb_bytes(); }
};

void sliced_row(const MatrixRef& matrix, std::uint64_t row, float* out) {
  dequantise_row(slices_of(matrix), matrix.view, row, {out, matrix.shape.columns});
}

template <unsigned kHigh, unsigned kLow>
constexpr MatrixFormat slices(std::string_view name) {
  MatrixFormat format;
  format.name = name;
  format.planes = {
      {{"msb", Slices<kHigh, kLow>::msb}, {"lsb", Slices<kHigh, kLow>::lsb, PlaneRegion::kRest}}};
  format.block = {1, kCellColumns};
  format.input = InputForm::kCells;
  format.slices = SliceBits{kHigh, kLow};
  format.row = sliced_row;
  return format;
}

// Codes, then their scales.
Bytes int8_plane(MatrixShape shape) { return Int8Shape{{shape.rows, shape.columns}}.bytes(); }
void int8_row(const MatrixRef& matrix, std::uint64_t row, float* out) {
  const Int8Shape shape{{matrix.shape.rows, matrix.shape.columns}};
  dequantise_int8_row({host(matrix, 0), shape.bytes()}, shape, row, {out, shape.columns});
}

}  // namespace

constinit const MatrixFormat kFormatF32 = words<4, f32>("f32", DType::kF32);
constinit const MatrixFormat kFormatF16 = words<2, half<fp16_to_float>>("f16", DType::kF16);
constinit const MatrixFormat kFormatBf16 = words<2, half<bf16_to_float>>("bf16", DType::kBF16);
constinit const MatrixFormat kFormatSplit = {
    .name = "split", .planes = {{{"sm", element_plane}, {"exp", nullptr, PlaneRegion::kRest}}}};
constinit const MatrixFormat kFormatPacked = {
    .name = "packed",
    .planes = {{{"sm", tile_plane}, {"exp", nullptr, PlaneRegion::kRest}}},
    .block = {kTileRows, kTileColumns},
    .input = InputForm::kWords,
    .row = packed_row};
constinit const MatrixFormat kFormatSlices84 = slices<8, 4>("slices_8_4");
constinit const MatrixFormat kFormatSlices63 = slices<6, 3>("slices_6_3");
constinit const MatrixFormat kFormatSlices42 = slices<4, 2>("slices_4_2");
constinit const MatrixFormat kFormatInt8 = {.name = "int8",
                                            .planes = {{{"int8", int8_plane}}},
                                            .block = {1, kInt8GroupColumns},
                                            .input = InputForm::kWords,
                                            .row = int8_row};

std::span<const MatrixFormat* const> matrix_formats() {
  static constexpr const MatrixFormat* kAll[] = {
      &kFormatF32,      &kFormatF16,      &kFormatBf16,  &kFormatSplit, &kFormatPacked,   &kFormatSlices84,
      &kFormatSlices63, &kFormatSlices42, &kFormatInt8,  &kFormatQ40,   &kFormatQ41,      &kFormatQ50,
      &kFormatQ51,      &kFormatQ80,      &kFormatQ2K,   &kFormatQ3K,   &kFormatQ4K,      &kFormatQ5K,
      &kFormatQ6K,      &kFormatIq4Nl,    &kFormatIq4Xs, &kFormatMxfp4, &kFormatMxfp4Pair};
  return kAll;
}

std::size_t MatrixFormat::plane_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(planes, [](const Plane& plane) { return !plane.name.empty(); }));
}

bool MatrixFormat::fixed_size() const {
  return std::ranges::all_of(planes,
                             [](const Plane& plane) { return plane.name.empty() || plane.bytes != nullptr; });
}

Bytes MatrixFormat::plane_bytes(MatrixShape shape, std::size_t plane) const {
  SLUICE_CHECK(plane < plane_count() && planes[plane].bytes != nullptr, std::string(name));
  return planes[plane].bytes(shape);
}

Bytes MatrixFormat::bytes(MatrixShape shape) const {
  Bytes sum = 0;
  for (std::size_t plane = 0; plane < plane_count(); ++plane) sum += plane_bytes(shape, plane);
  return sum;
}

bool MatrixFormat::fits(MatrixShape shape) const {
  return ragged || (shape.rows % block.rows == 0 && shape.columns % block.columns == 0);
}

const MatrixFormat* find_format(std::string_view name, std::span<const MatrixFormat* const> more) {
  for (const auto formats : {matrix_formats(), more}) {
    const auto found = std::ranges::find(formats, name, &MatrixFormat::name);
    if (found != formats.end()) return *found;
  }
  return nullptr;
}

const MatrixFormat* word_format(DType dtype) {
  const auto found = std::ranges::find(matrix_formats(), std::optional(dtype), &MatrixFormat::words);
  return found == matrix_formats().end() ? nullptr : *found;
}

const MatrixFormat& slices_format(SliceBits bits) {
  const auto found = std::ranges::find(matrix_formats(), std::optional(bits), &MatrixFormat::slices);
  SLUICE_CHECK(found != matrix_formats().end(), slice_bits_text(bits));
  return **found;
}

MatrixRef word_matrix(const std::byte* data, DType dtype, std::uint64_t rows, std::uint64_t columns) {
  const MatrixFormat* const format = word_format(dtype);
  SLUICE_CHECK(format != nullptr, std::string(dtype_name(dtype)));
  return {format, {rows, columns}, {device::host_space().address(data)}};
}

MatrixRef rows_of(const MatrixRef& matrix, std::uint64_t first, std::uint64_t count) {
  SLUICE_CHECK(!matrix.empty() && matrix.format->fixed_size() && matrix.format->block.rows == 1 &&
                   first + count <= matrix.shape.rows,
               std::to_string(first));
  MatrixRef rows = matrix;
  rows.shape.rows = count;
  for (std::size_t plane = 0; plane < matrix.format->plane_count(); ++plane)
    rows.planes[plane] =
        matrix.planes[plane] + matrix.format->plane_bytes({first, matrix.shape.columns}, plane);
  return rows;
}

MatrixRef sliced_ref(const SlicedView& slices, SliceView view) {
  const device::HostSpace& space = device::host_space();
  return {&slices_format(slices.shape.bits),
          {slices.shape.rows, slices.shape.columns},
          {space.address(slices.msb), space.address(slices.lsb)},
          {},
          view};
}

SlicedView slices_of(const MatrixRef& matrix) {
  SLUICE_CHECK(!matrix.empty() && matrix.format->slices, "no matrix in slices");
  const SlicedShape shape{{matrix.shape.rows, matrix.shape.columns}, *matrix.format->slices};
  const std::byte* const msb = host(matrix, 0);
  return {shape, msb, msb + shape.scales_offset(), msb + shape.zeros_offset(), host(matrix, 1)};
}

MatrixRef int8_ref(MatrixShape shape, const std::byte* data) {
  return {&kFormatInt8, shape, {device::host_space().address(data)}};
}

void row_to_float(const MatrixRef& matrix, std::uint64_t row, float* out) {
  SLUICE_CHECK(!matrix.empty() && matrix.format->row != nullptr && row < matrix.shape.rows,
               "row " + std::to_string(row) + " of " + std::to_string(matrix.shape.rows));
  matrix.format->row(matrix, row, out);
}

}  // namespace sluice::codec
