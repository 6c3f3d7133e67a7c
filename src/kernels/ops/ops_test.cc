// Operations of the host and of devices: each has the bits of its kernel, whatever the unit; what fails on a
// device comes out of receive() or settle(), once.
#include "kernels/ops/ops.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/float16.h"
#include "base/machine/thread_pool.h"
#include "device/emulated/emulated_device.h"
#include "device/host_buffer.h"
#include "device/space.h"
#include "kernels/ops/function_kernels.h"
#include "kernels/ops/host_ops.h"
#include "kernels/ops/mlp.h"
#include "kernels/ops/stream_ops.h"
#include "kernels/products/products.h"
#include "kernels/products/words/matmul.h"

namespace sluice::kernels {
namespace {

using device::Traffic;

constexpr std::size_t kFloats = 1 << 18;

// A unit with memory for some numbers: the host, or a device of either kind.
class Unit {
 public:
  explicit Unit(const std::string& kind, std::function<device::Fault(std::uint64_t, Bytes)> fault = {})
      : context_{.pool = &pool_, .isa = best_isa()} {
    if (kind == "host") {
      ops_ = std::make_unique<HostOps>(context_);
      buffer_ = device::HostBuffer(accountant_, device::Account::kActivations, kFloats * sizeof(float));
      begin_ = device::host_space().address(buffer_.data());
      return;
    }
    if (kind == "host_device") {
      device_ = device::make_host_device(accountant_);
    } else {
      device::EmulatedOptions options;
      options.spec = device::parse_emulated_spec("emulated:link=inf,compute=inf,latency=0us", "the device");
      options.memory = 8 * kMiB;
      options.fault = std::move(fault);
      device_ = device::make_emulated_device(std::move(options));
    }
    kernels_ = std::make_unique<FunctionKernels>(device_->memory(), device_->pool(), context_,
                                                 ScratchShape{.tokens = 8, .columns = 512});
    ops_ = std::make_unique<StreamOps>(*device_, *kernels_);
    block_ = device_->memory().allocate(device::Account::kActivations, kFloats * sizeof(float));
    begin_ = block_.address();
  }
  ~Unit() {
    ops_.reset();
    kernels_.reset();
    block_.release();
  }

  Ops& ops() { return *ops_; }
  const Context& context() const { return context_; }
  Floats room(std::size_t count) {
    const Floats floats{begin_ + used_};
    used_ += round_up(count * sizeof(float), 256);
    return floats;
  }
  Floats put(const std::vector<float>& values) {
    const Floats floats = room(values.size());
    ops_->send(values, floats, Traffic::kDemand);
    ops_->settle();
    return floats;
  }
  Vector vector(const std::vector<float>& values) { return {put(values), values.size()}; }
  // Words of BF16, rows × columns.
  codec::MatrixRef matrix(const std::vector<float>& values, std::size_t rows, std::size_t columns) {
    std::vector<float> words((values.size() + 1) / 2);
    auto* const at = reinterpret_cast<std::byte*>(words.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t word = float_to_bf16(values[i]);
      std::memcpy(at + 2 * i, &word, 2);
    }
    codec::MatrixRef ref = codec::word_matrix(nullptr, DType::kBF16, rows, columns);
    ref.planes[0] = put(words).at;
    return ref;
  }
  std::vector<float> get(Floats floats, std::size_t count) {
    std::vector<float> values(count);
    ops_->receive(floats, values);
    return values;
  }

 private:
  device::Accountant accountant_{64 * kMiB};
  ThreadPool pool_{2};
  const Context context_;
  device::HostBuffer buffer_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<UnitKernels> kernels_;
  std::unique_ptr<Ops> ops_;
  device::Block block_;
  device::Address begin_;
  Bytes used_ = 0;
};

std::vector<float> random_floats(std::mt19937_64& random, std::size_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Something of everything that a layer does, one operation behind the other, and all it leaves.
std::vector<float> layer(Unit& unit, std::uint64_t seed, std::size_t tokens) {
  std::mt19937_64 random(seed);
  const std::size_t d = 96, heads = 4, kv_heads = 2, head = 24, width = 80, positions = 70;
  Ops& ops = unit.ops();
  std::vector<float> all;
  const auto show = [&](Floats floats, std::size_t count) {
    const std::vector<float> values = unit.get(floats, count);
    all.insert(all.end(), values.begin(), values.end());
  };
  const auto rows = [&](std::size_t count) { return unit.put(random_floats(random, count)); };
  const auto matrix = [&](std::size_t r, std::size_t c) {
    return unit.matrix(random_floats(random, r * c), r, c);
  };
  const Floats hidden = rows(tokens * d), normed = unit.room(tokens * d),
               arranged = unit.room(tokens * arranged_floats(d));
  ops.run(op::RmsNorm{.x = hidden,
                      .rows = tokens,
                      .columns = d,
                      .x_stride = d,
                      .weight = unit.vector(random_floats(random, d)),
                      .eps = 1e-5f,
                      .y = normed,
                      .y_stride = d});
  show(normed, tokens * d);
  ops.run(op::Arrange{.form = codec::InputForm::kWords,
                      .x = normed,
                      .tokens = tokens,
                      .columns = d,
                      .x_stride = d,
                      .arranged = arranged});
  const codec::MatrixRef wq = matrix(heads * head, d), wk = matrix(kv_heads * head, d),
                         wv = matrix(kv_heads * head, d);
  const Floats q = unit.room(tokens * heads * head), k = unit.room(tokens * kv_heads * head),
               v = unit.room(tokens * kv_heads * head);
  const Vector bias = unit.vector(random_floats(random, heads * head));
  if (tokens == 1) {
    ops.run(op::VectorMatmuls{{{{arranged, &wq, q, bias}, {arranged, &wk, k}, {arranged, &wv, v}}}});
  } else {
    for (const auto& [weight, out, with] :
         {std::tuple(&wq, q, bias), std::tuple(&wk, k, Vector{}), std::tuple(&wv, v, Vector{})})
      ops.run(op::Matmul{.x = arranged,
                         .tokens = tokens,
                         .weight = weight,
                         .bias = with,
                         .y = out,
                         .y_stride = weight->shape.rows});
  }
  ops.run(op::Clamp{2.0f, tokens * heads * head, q});
  const Floats cos = rows(tokens * head / 2), sin = rows(tokens * head / 2);
  ops.run(op::Rope{.form = RopeForm::kHalf,
                   .x = q,
                   .tokens = tokens,
                   .token_stride = heads * head,
                   .heads = heads,
                   .head_stride = head,
                   .half = head / 2,
                   .cos = cos,
                   .sin = sin});
  show(q, tokens * heads * head);
  // A cache whose blocks lie in another order than its positions.
  std::vector<std::uint32_t> blocks = {2, 0, 1};
  CacheRows keys{.data = unit.room(96 * kv_heads * head / 2).at,
                 .rows = 96,
                 .row_elements = kv_heads * head,
                 .heads = kv_heads,
                 .columns = head,
                 .blocks = blocks.data()};
  CacheRows values = keys;
  values.data = unit.room(96 * kv_heads * head / 2).at;
  const Floats before = rows((positions - tokens) * kv_heads * head);
  for (const auto& [cache, now] : {std::pair(keys, k), std::pair(values, v)}) {
    ops.run(
        op::StoreCache{.x = before, .tokens = positions - tokens, .x_stride = kv_heads * head, .to = cache});
    ops.run(op::StoreCache{.x = now,
                           .tokens = tokens,
                           .x_stride = kv_heads * head,
                           .first_position = positions - tokens,
                           .to = cache});
  }
  // The last position's rows are those of an earlier one, as if both held the same token.
  const std::size_t last = keys.row_of(positions - 1);
  for (const CacheRows& cache : {keys, values})
    ops.run(op::CopyCacheRows{.in = cache, .from = keys.row_of(40), .rows = 3, .to = last});
  const AttentionShape shape{heads, kv_heads, head, head, 0.2f, 0, 0};
  const std::size_t scratch = 2 * attention_scratch_floats(shape, positions);
  const Floats attended = unit.room(tokens * heads * head);
  ops.run(op::Attention{.shape = shape,
                        .q = q,
                        .tokens = tokens,
                        .first_position = positions - tokens,
                        .keys = keys,
                        .values = values,
                        .out = attended,
                        .scratch = unit.room(scratch),
                        .scratch_floats = scratch,
                        .sinks = unit.vector(random_floats(random, heads))});
  blocks.assign(3, 77);  // nobody reads it any more
  show(attended, tokens * heads * head);
  const Floats branch = unit.room(tokens * d), inner = unit.room(tokens * arranged_floats(heads * head));
  ops.run(op::Project{.x = attended,
                      .tokens = tokens,
                      .x_stride = heads * head,
                      .weight = matrix(d, heads * head),
                      .arranged = inner,
                      .y = branch,
                      .y_stride = d});
  ops.run(op::Add{branch, tokens * d, hidden});
  ops.run(op::AddToRows{.x = rows(d), .rows = tokens, .columns = d, .to = hidden});
  ops.run(op::GateRows{.gate = rows(tokens), .rows = tokens, .columns = d, .x = hidden});
  ops.run(op::Scale{0.75f, tokens * d, hidden});
  show(hidden, tokens * d);
  InputFloats inputs{};
  inputs[static_cast<std::size_t>(codec::InputForm::kWords)] = arranged;
  ops.run(op::Mlp{.gate = matrix(width, d),
                  .up = matrix(width, d),
                  .down = matrix(d, width),
                  .inputs = inputs,
                  .tokens = tokens,
                  .gate_room = unit.room(tokens * width),
                  .up_room = unit.room(tokens * width),
                  .inner = unit.room(tokens * arranged_floats(width)),
                  .out = branch});
  show(branch, tokens * d);
  ops.run(op::Mlp{.gate = {},
                  .up = matrix(2 * width, d),
                  .down = matrix(d, width),
                  .gating = {GatingForm::kClampedPairs, {7.0f, 1.702f}},
                  .inputs = inputs,
                  .tokens = tokens,
                  .gate_room = unit.room(tokens * width),
                  .up_room = unit.room(tokens * 2 * width),
                  .inner = unit.room(tokens * arranged_floats(width)),
                  .out = branch});
  show(branch, tokens * d);
  const Floats latent = unit.room(tokens * d);
  ops.run(op::MatmulTransposed{.x = q,
                               .tokens = tokens,
                               .x_stride = heads * head,
                               .weight = matrix(heads * head, d),
                               .y = latent,
                               .y_stride = d});
  ops.run(op::CopyRows{
      .from = latent, .rows = tokens, .columns = d / 2, .from_stride = d, .to = branch, .to_stride = d});
  std::vector<op::WeightedRow> sums;
  for (std::uint32_t t = 0; t < tokens; ++t) sums.push_back({t, static_cast<std::uint32_t>(t % 2), 0.5f});
  ops.run(op::CombineRows{
      .rows = latent, .row_count = tokens, .columns = d, .sums = sums, .to = branch, .tokens = tokens});
  sums.clear();
  show(branch, tokens * d);
  ops.run(op::Clear{d, branch});
  show(branch, tokens * d);
  ops.settle();
  return all;
}

class OpsOfUnits : public ::testing::TestWithParam<std::string> {};

TEST_P(OpsOfUnits, ALayerHasTheBitsOfTheHost) {
  for (const std::size_t tokens : {1, 2, 7})
    for (const std::uint64_t seed : {1, 2, 3}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", tokens " + std::to_string(tokens));
      Unit host("host"), unit(GetParam());
      const std::vector<float> expected = layer(host, seed, tokens), found = layer(unit, seed, tokens);
      ASSERT_EQ(found.size(), expected.size());
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0);
      float most = 0;
      for (const float value : expected) most = std::max(most, std::fabs(value));
      EXPECT_GT(most, 0.1f);  // something was computed
    }
}
INSTANTIATE_TEST_SUITE_P(Units, OpsOfUnits, ::testing::Values("host_device", "emulated"));

// The kernel itself is the oracle of an operation of the host.
TEST(HostOps, AreTheKernels) {
  std::mt19937_64 random(5);
  Unit unit("host");
  const std::size_t rows = 40, columns = 70, tokens = 3;
  const std::vector<float> x = random_floats(random, tokens * columns);
  const codec::MatrixRef weight = unit.matrix(random_floats(random, rows * columns), rows, columns);
  const Floats out = unit.room(tokens * rows);
  unit.ops().run(op::Project{.x = unit.put(x),
                             .tokens = tokens,
                             .x_stride = columns,
                             .weight = weight,
                             .arranged = unit.room(tokens * arranged_floats(columns)),
                             .y = out,
                             .y_stride = rows});
  std::vector<float> arranged(tokens * arranged_floats(columns)), expected(tokens * rows);
  arrange_for(unit.context(), weight, x.data(), tokens, columns, arranged.data());
  matmul(unit.context(), arranged.data(), tokens, weight, {}, expected.data(), rows);
  EXPECT_EQ(unit.get(out, tokens * rows), expected);
}

TEST(HostOps, CopyNothingThatIsThereAlready) {
  Unit unit("host");
  const Floats floats = unit.put({1, 2, 3});
  float* const here = host_floats(floats);
  here[1] = 5;
  unit.ops().send({here, 3}, floats, Traffic::kDemand);
  unit.ops().receive(floats, {here, 3});
  EXPECT_EQ(unit.get(floats, 3), (std::vector<float>{1, 5, 3}));
}

TEST(StreamOps, ACopyThatFailsComesOutOnceAndTheUnitGoesOn) {
  std::atomic<bool> fails = false;
  Unit unit("emulated",
            [&](std::uint64_t, Bytes) { return fails ? device::Fault::kCopyFails : device::Fault::kNone; });
  const Floats floats = unit.put({1, 2, 3});
  fails = true;
  const std::vector<float> more = {4, 5, 6};
  unit.ops().send(more, floats, Traffic::kDemand);
  unit.ops().run(op::Scale{2.0f, 3, floats});
  EXPECT_THROW(unit.ops().settle(), Error);
  fails = false;
  unit.ops().settle();
  EXPECT_EQ(unit.get(floats, 3), (std::vector<float>{1, 2, 3})) << "the operation behind it was skipped";
  fails = true;
  std::vector<float> out(3);
  EXPECT_THROW(unit.ops().receive(floats, out), Error);
  fails = false;
  unit.ops().abandon();
  unit.ops().run(op::Scale{2.0f, 3, floats});
  EXPECT_EQ(unit.get(floats, 3), (std::vector<float>{2, 4, 6}));
}

}  // namespace
}  // namespace sluice::kernels
