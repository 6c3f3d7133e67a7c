// `quantise`: codes of one group of weights in two slices. SPEC §4.2.
#include "codec/slices/affine_group.h"
#include "lab/ask/fields.h"
#include "lab/ask/functions.h"

namespace sluice::lab {
namespace {
namespace quantise_function {

constexpr std::int64_t kMostWeights = 32, kMostBits = 16;

constexpr Field kIn[] = {
    {"w", "weights, at most 32 numbers"},
    {"high", "bits of a code, an integer in 1..16"},
    {"low", "of them in the higher slice, an integer in 1..high"},
    {"fp16_scale", "whether the scale is rounded as it is stored, true or false"},
};
constexpr Field kOut[] = {
    {"scale", "of the group"},
    {"z", "its zero point"},
    {"q", "codes"},
    {"msb", "their higher slices"},
    {"lsb", "their lower slices"},
    {"z_low", "the zero point of the higher slice alone"},
    {"deq_high", "weights of both slices"},
    {"deq_low", "weights of the higher slice alone"},
};

Json answer(const JsonObject& line) {
  const std::vector<double> w = numbers(line, "w", -kMostNumber, kMostNumber);
  if (w.size() > kMostWeights) line.fail("w", kIn[0].text);
  const auto high = static_cast<unsigned>(line.integer("high", 1, kMostBits));
  const unsigned shift = high - static_cast<unsigned>(line.integer("low", 1, high));
  const codec::AffineGroup group = codec::quantise_affine(
      w, high, boolean(line, "fp16_scale") ? codec::ScaleType::kFp16 : codec::ScaleType::kDouble);
  Json msb = Json::array(), lsb = Json::array(), deq_high = Json::array(), deq_low = Json::array();
  for (const unsigned code : group.codes) {
    msb.push_back(code >> shift);
    lsb.push_back(code & ((1u << shift) - 1));
    deq_high.push_back(codec::high_view(group, code));
    deq_low.push_back(codec::low_view(group, code, shift));
  }
  return {{"scale", group.scale},
          {"z", group.zero},
          {"q", group.codes},
          {"msb", std::move(msb)},
          {"lsb", std::move(lsb)},
          {"z_low", group.zero >> shift},
          {"deq_high", std::move(deq_high)},
          {"deq_low", std::move(deq_low)}};
}

}  // namespace quantise_function
}  // namespace

const Function kQuantise = {.name = "quantise",
                            .section = "4.2",
                            .in = quantise_function::kIn,
                            .out = quantise_function::kOut,
                            .answer = quantise_function::answer};

}  // namespace sluice::lab
