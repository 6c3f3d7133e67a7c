// A plane of codes also holds their scales and zero points, one array behind the other, so guard pages around
// a plane do not see a read from one array into the next. Here a kernel computes some strips of a matrix with
// many: of each array it needs a run of bytes with pages that it does not need on both sides, and those
// cannot be accessed. Each begin and each end of each run stands at such a page once. Reading a single byte
// beyond ends the test, also where that byte belongs to the neighbouring array: the codes of the last strip
// end where the scales of the first begin, and so on.
#include <string>
#include <vector>

#include "codec/slices/int8_matrix.h"
#include "kernels/guarded_plane.h"
#include "kernels/products/codes/activation_codes.h"
#include "kernels/products/codes/integer_test_data.h"
#include "kernels/products/codes/sliced_test_data.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/input_form.h"
#include "kernels/test_data.h"

namespace sluice::kernels::strip_reads_test {
namespace {

struct Array {
  std::size_t begin, strip_bytes;
};

struct Plane {
  std::vector<Array> arrays;
  std::vector<std::byte> bytes;
  // What strips [first, end) need.
  std::vector<PlaneRange> ranges(std::size_t first, std::size_t end) const {
    std::vector<PlaneRange> needed;
    for (const Array& array : arrays)
      needed.push_back({array.begin + first * array.strip_bytes, array.begin + end * array.strip_bytes});
    return needed;
  }
};

struct Matrix {
  const codec::MatrixFormat* format;
  codec::MatrixShape shape;
  std::size_t side;  // strips whose bytes are at least a page of each array
  std::vector<Plane> planes;
};

Plane plane(std::mt19937_64& random, std::vector<Array> arrays, std::size_t bytes) {
  Plane plane{std::move(arrays), std::vector<std::byte>(bytes)};
  for (std::byte& b : plane.bytes) b = static_cast<std::byte>(random());
  return plane;
}

// Strips of which each array has a page, the strips that are asked for, and as many again.
constexpr std::size_t kAsked = 2;
std::size_t strips_of_a_page(std::size_t least_strip_bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (page + least_strip_bytes - 1) / least_strip_bytes;
}
std::size_t rows_with(std::mt19937_64& random, std::size_t side) {
  return (2 * side + kAsked) * codec::kStripRows - random() % codec::kStripRows;
}

Matrix sliced(std::mt19937_64& random, SliceBits bits, std::size_t columns) {
  const std::size_t groups = SlicedShape{{1, columns}, bits}.groups();
  const std::size_t side = strips_of_a_page(groups * codec::kStripRows);
  const SlicedShape shape{{rows_with(random, side), columns}, bits};
  return {&codec::slices_format(bits),
          {shape.rows, columns},
          side,
          {plane(random,
                 {{0, shape.strip_bytes(bits.low)},
                  {shape.scales_offset(), groups * 2 * codec::kStripRows},
                  {shape.zeros_offset(), groups * codec::kStripRows}},
                 shape.msb_bytes()),
           plane(random, {{0, shape.strip_bytes(bits.shift())}}, shape.lsb_bytes())}};
}

Matrix int8(std::mt19937_64& random, std::size_t columns) {
  const codec::Int8Shape strip{{codec::kStripRows, columns}};
  const std::size_t side = strips_of_a_page(strip.scale_bytes());
  const codec::Int8Shape shape{{rows_with(random, side), columns}};
  return {&codec::kFormatInt8,
          {shape.rows, columns},
          side,
          {plane(random, {{0, shape.strip_bytes(8)}, {shape.scales_offset(), strip.scale_bytes()}},
                 shape.bytes())}};
}

struct Kernel {
  std::string name;
  RowsKernel rows;
  bool coded;  // activations are in codes
};

std::vector<Kernel> kernels_of(const codec::MatrixFormat& format) {
  std::vector<Kernel> all;
  const FormatRow& row = format_row({}, &format);
  for (const Isa isa : available_isas()) all.push_back({std::string(isa_name(isa)), row.of(isa).rows, false});
  for (const NamedIntegerKernels& own : available_integer_kernels()) {
    RowsKernel rows = own.kernels->dense;
    if (format.slices) {
      const auto bits = std::ranges::find(codec::kStoredSliceBits, *format.slices);
      rows = own.kernels->slices.of_bits[bits - codec::kStoredSliceBits.begin()];
    }
    all.push_back({own.name + " with codes", rows, true});
  }
  return all;
}

struct Activations {
  std::size_t tokens, stride;
  std::vector<float> floats;
};

Activations activations(std::mt19937_64& random, const Matrix& m, std::size_t tokens, bool coded) {
  const std::vector<float> x = normal_floats(random, tokens * m.shape.columns);
  const InputFormRow& form = input_form(*m.format->input);
  const std::size_t stride = coded ? activation_code_floats(m.shape.columns) : form.floats(m.shape.columns);
  Activations all{tokens, stride, std::vector<float>(tokens * stride)};
  if (coded)
    code_activations({}, x.data(), tokens, m.shape.columns, m.shape.columns, all.floats.data(), stride);
  else
    form.arrange({}, x.data(), tokens, m.shape.columns, m.shape.columns, all.floats.data());
  return all;
}

// Strips [first, end) of the product with planes at these places; other rows stay −1.
std::vector<float> multiply(const Kernel& kernel, const Activations& x, const Matrix& m, SliceView view,
                            const std::vector<const std::byte*>& planes, std::size_t first, std::size_t end) {
  std::vector<float> y(x.tokens * m.shape.rows, -1.0f);
  ProductArgs args{};
  args.x = x.floats.data();
  args.x_stride = x.stride;
  args.tokens = x.tokens;
  std::ranges::copy(planes, args.planes);
  args.rows = m.shape.rows;
  args.columns = m.shape.columns;
  args.view = view;
  args.y = y.data();
  args.y_stride = m.shape.rows;
  kernel.rows(args, first * codec::kStripRows, std::min<std::size_t>(end * codec::kStripRows, m.shape.rows));
  return y;
}

// Puts each edge of what plane `guarded` needs at a page's border, and multiplies. Returns how many edges.
std::size_t multiply_at_each_edge(std::mt19937_64& random, const Matrix& m, std::size_t guarded,
                                  std::size_t first, std::size_t end) {
  const std::vector<PlaneRange> needed = m.planes[guarded].ranges(first, end);
  std::vector<std::size_t> edges;
  for (const PlaneRange& range : needed) edges.insert(edges.end(), {range.begin, range.end});
  std::vector<const std::byte*> plain;
  for (const Plane& plane : m.planes) plain.push_back(plane.bytes.data());
  for (const std::size_t edge : edges) {
    const GuardedPlane plane(m.planes[guarded].bytes, needed, edge);
    std::vector<const std::byte*> planes = plain;
    planes[guarded] = plane.data();
    for (const Kernel& kernel : kernels_of(*m.format)) {
      const Activations x = activations(random, m, 1 + random() % 2 * (random() % 20), kernel.coded);
      for (const SliceView view : kViews) {
        if (!m.format->slices && view != SliceView::kHigh) continue;
        // A view without the lower slice gets no address of it.
        if (view != SliceView::kHigh && guarded == 1) continue;
        EXPECT_TRUE(same_bits(multiply(kernel, x, m, view, plain, first, end),
                              multiply(kernel, x, m, view, planes, first, end)))
            << kernel.name << ", " << m.format->name << ' ' << m.shape.rows << 'x' << m.shape.columns << ", "
            << x.tokens << " tokens, edge at byte " << edge;
      }
    }
  }
  return edges.size();
}

// Returns how many edges had guards.
std::size_t multiply_some_strips(std::mt19937_64& random, const Matrix& m) {
  std::size_t edges = 0;
  for (const std::size_t first : {std::size_t{0}, m.side, 2 * m.side})
    for (std::size_t plane = 0; plane < m.planes.size(); ++plane)
      edges += multiply_at_each_edge(random, m, plane, first, first + kAsked);
  return edges;
}

TEST(StripReads, OfSlicesStayInsideEachArray) {
  std::mt19937_64 random = test_random(110);
  for (const SliceBits bits : codec::kStoredSliceBits)
    for (const std::size_t columns : {1 + random() % 32, 33 + random() % 200, 513 + random() % 100})
      EXPECT_EQ(multiply_some_strips(random, sliced(random, bits, columns)), 3 * (2 * 3 + 2));
}

TEST(StripReads, OfInt8StayInsideEachArray) {
  std::mt19937_64 random = test_random(111);
  for (const std::size_t columns : {1 + random() % 128, 129 + random() % 128, 513 + random() % 100})
    EXPECT_EQ(multiply_some_strips(random, int8(random, columns)), std::size_t{3 * 2 * 2});
}

}  // namespace
}  // namespace sluice::kernels::strip_reads_test
