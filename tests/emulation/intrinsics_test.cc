// The emulation against the CPU: against AVX2 where it has the same operation, against the instructions
// themselves where the CPU has them, and against results written by hand from Intel's description.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/machine/cpu.h"
#include "emulation/cases.h"

namespace sluice::emulation {
namespace {

constexpr int kTrials = 2000;

std::span<const Case> cases(const Cases& c) { return {c.first, c.count}; }
std::span<const TileCase> cases(const TileCases& c) { return {c.first, c.count}; }

// Those of `needs` that the CPU lacks.
std::string lacking(std::initializer_list<std::string_view> needs) {
  const std::vector<std::string> have = cpu_info().features;
  std::string names;
  for (const std::string_view need : needs) {
    if (std::ranges::count(have, need) == 0) names.append(names.empty() ? "" : ", ").append(need);
  }
  return names;
}
std::string lacking_avx2() { return lacking({"avx2", "fma", "f16c"}); }
std::string lacking_avx512() {
  return lacking({"avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi",
                  "avx512vbmi2", "avx512vnni", "avx512bf16"});
}
std::string lacking_amx() { return lacking({"amx_tile", "amx_bf16", "amx_int8"}); }

const Case& named(std::span<const Case> all, std::string_view name) {
  const auto found = std::ranges::find(all, name, [](const Case& c) { return std::string_view(c.name); });
  if (found == all.end()) throw std::invalid_argument("no case " + std::string(name));
  return *found;
}

// Lanes of random kinds: any bits, bytes and words at their limits, fp32 and BF16 numbers of all classes.
class RandomOperands {
 public:
  explicit RandomOperands(std::uint64_t seed) : random_(seed) {}

  void fill(std::span<unsigned char> bytes) {
    switch (random_() % 5) {
      case 0:
        for (unsigned char& b : bytes) b = static_cast<unsigned char>(random_());
        break;
      case 1:
        for (unsigned char& b : bytes) b = of(kBytes);
        break;
      case 2:
        lanes<std::uint16_t>(bytes, [&] { return of(kWords); });
        break;
      case 3:
        lanes<std::uint32_t>(bytes, [&] { return of(kFloats); });
        break;
      default:  // fp32 of moderate size, few bits: sums cancel and tie
        lanes<float>(bytes, [&] {
          const float number = static_cast<float>(random_() % 1024) - 512.0f;
          return std::ldexp(number, static_cast<int>(random_() % 40) - 20);
        });
    }
  }
  Operands operands() {
    Operands o;
    fill(o.a);
    fill(o.b);
    fill(o.c);
    o.k = random_();
    if (random_() % 8 == 0) o.k = 0;
    if (random_() % 8 == 0) o.k = ~std::uint64_t{0};
    return o;
  }
  std::uint64_t operator()() { return random_(); }

 private:
  static constexpr std::array<unsigned char, 6> kBytes = {0, 1, 0x7f, 0x80, 0x81, 0xff};
  // The last words are BF16: products of 2^-152 to 2.25·2^-151, which matter beside the smallest normal
  // number.
  static constexpr std::array<std::uint16_t, 19> kWords = {
      0,      1,      0x7fff, 0x8000, 0x8001, 0xffff, 0x3f80, 0xbf80, 0x0080, 0x8080,
      0x007f, 0x7f80, 0x7fc1, 0x7f7f, 0x1f80, 0x1fc0, 0x1400, 0x9400, 0x93c0};
  static constexpr std::array<std::uint32_t, 18> kFloats = {
      0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000,
      0x80800000, 0x3f800000, 0xbf800000, 0x3f800001, 0x7f7fffff, 0xff7fffff,
      0x7f800000, 0xff800000, 0x7fc00000, 0x4f000000, 0xcf000000, 0x4effffff};
  template <class T, std::size_t kCount>
  T of(const std::array<T, kCount>& values) {
    return values[random_() % kCount];
  }
  template <class T, class F>
  static void lanes(std::span<unsigned char> bytes, const F& make) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
      const T value = make();
      std::memcpy(&bytes[at], &value, sizeof(T));
    }
  }
  std::mt19937_64 random_;
};

float float_at(const unsigned char* bytes, std::size_t i) {
  float number;
  std::memcpy(&number, bytes + 4 * i, sizeof(number));
  return number;
}
bool equal(Equal how, const unsigned char* found, const unsigned char* expected, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes / 4; ++i) {
    if (std::memcmp(found + 4 * i, expected + 4 * i, 4) == 0) continue;
    const bool both_nan = std::isnan(float_at(found, i)) && std::isnan(float_at(expected, i));
    if (how == Equal::kBits || !both_nan) return false;
  }
  return true;
}
std::string hex(const unsigned char* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
    if (i % 4 == 3) text += ' ';
  }
  return text;
}

Result run(const Case& c, const Operands& o) {
  Result r{};
  c.run(o, r);
  return r;
}

void expect_same(std::span<const Case> others, std::uint64_t seed) {
  RandomOperands random(seed);
  std::set<std::string_view> wrong;  // reports each only once
  for (int trial = 0; trial < kTrials; ++trial) {
    const Operands o = random.operands();
    for (const Case& other : others) {
      const Result expected = run(other, o), found = run(named(cases(kEmulated), other.name), o);
      if (wrong.contains(other.name) || equal(other.equal, found.bytes, expected.bytes, 64)) continue;
      wrong.insert(other.name);
      ADD_FAILURE() << other.name << ", seed " << seed << "\na        " << hex(o.a, 64) << "\nb        "
                    << hex(o.b, 64) << "\nc        " << hex(o.c, 64) << "\nk        " << std::hex << o.k
                    << "\nexpected " << hex(expected.bytes, 64) << "\nfound    " << hex(found.bytes, 64);
    }
  }
}

std::uint64_t new_seed() {
  const std::uint64_t seed = std::random_device{}();
  testing::Test::RecordProperty("seed", std::to_string(seed));
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

TEST(Intrinsics, AreWhatAvx2GivesForTheirHalves) {
  if (const std::string without = lacking_avx2(); !without.empty())
    GTEST_SKIP() << "THE EMULATION IS NOT COMPARED WITH AVX2 HERE: the CPU lacks " << without;
  expect_same(cases(kTwins), new_seed());
}

TEST(Intrinsics, AreWhatTheInstructionsAre) {
  if (const std::string without = lacking_avx512(); !without.empty())
    GTEST_SKIP() << "THE EMULATION IS NOT COMPARED WITH AVX-512 HERE: the CPU lacks " << without;
  expect_same(cases(kReal), new_seed());
}

// Masked forms have the plain form's lanes where the mask has a bit, else those of c, or 0.
TEST(Intrinsics, MasksKeepLanes) {
  if (const std::string without = lacking_avx2(); !without.empty())
    GTEST_SKIP() << "THE EMULATION IS NOT TESTED HERE: the CPU lacks " << without;
  RandomOperands random(new_seed());
  const auto lane_bytes = [](std::string_view name) -> std::size_t {
    if (name.find("epi8") != name.npos || name.find("epu8") != name.npos) return 1;
    if (name.find("epi16") != name.npos || name.find("epu16") != name.npos) return 2;
    return name.find("epi64") != name.npos ? 8 : 4;
  };
  int forms = 0;
  for (const Case& c : cases(kEmulated)) {
    const std::string_view name = c.name;
    const bool zeroing = name.starts_with("maskz_");
    if (!zeroing && !name.starts_with("mask_")) continue;
    const std::string_view plain_name = name.substr(zeroing ? 6 : 5);
    const auto plain = std::ranges::find(cases(kEmulated), plain_name,
                                         [](const Case& p) { return std::string_view(p.name); });
    if (plain == cases(kEmulated).end() || name.ends_with("_mask") || plain_name.starts_with("set1"))
      continue;
    ++forms;
    const std::size_t bytes = lane_bytes(name);
    for (int trial = 0; trial < 20; ++trial) {
      const Operands o = random.operands();
      Result expected = run(*plain, o);
      for (std::size_t i = 0; i < 64; ++i) {
        if ((o.k >> i / bytes & 1) == 0) expected.bytes[i] = zeroing ? 0 : o.c[i];
      }
      const Result found = run(c, o);
      ASSERT_TRUE(equal(c.equal, found.bytes, expected.bytes, 64)) << name << " with mask " << o.k;
    }
  }
  EXPECT_GE(forms, 100);
}

// Moves, blends, loads and stores: lanes of one operand where the mask has a bit, else of the other.
TEST(Intrinsics, MasksChooseLanes) {
  if (const std::string without = lacking_avx2(); !without.empty())
    GTEST_SKIP() << "THE EMULATION IS NOT TESTED HERE: the CPU lacks " << without;
  struct Form {
    const char* name;
    char yes, no;
    std::size_t lane_bytes, lanes;
  };
  constexpr Form kForms[] = {
      {"mask_mov_epi8", 'a', 'c', 1, 64},        {"maskz_mov_epi8", 'a', '0', 1, 64},
      {"mask_mov_epi32", 'a', 'c', 4, 16},       {"mask_blend_epi8", 'b', 'a', 1, 64},
      {"mask_blend_epi32", 'b', 'a', 4, 16},     {"mask_mov_ps", 'a', 'c', 4, 16},
      {"mask_blend_ps", 'b', 'a', 4, 16},        {"maskz_loadu_epi8", 'a', '0', 1, 64},
      {"maskz_loadu_epi16", 'a', '0', 2, 32},    {"maskz_loadu_epi32", 'a', '0', 4, 16},
      {"maskz_loadu_ps", 'a', '0', 4, 16},       {"mask_loadu_epi8", 'a', 'c', 1, 64},
      {"256:maskz_loadu_epi8", 'a', '0', 1, 32}, {"mask_storeu_epi8", 'a', 'c', 1, 64},
      {"mask_storeu_epi16", 'a', 'c', 2, 32},    {"mask_storeu_epi32", 'a', 'c', 4, 16},
      {"mask_storeu_ps", 'a', 'c', 4, 16},       {"movm_epi8", '1', '0', 1, 64}};
  RandomOperands random(new_seed());
  for (const Form& form : kForms) {
    for (int trial = 0; trial < 50; ++trial) {
      const Operands o = random.operands();
      const unsigned char zeros[64] = {};
      unsigned char ones[64];
      std::memset(ones, 0xff, sizeof(ones));
      const auto operand = [&](char which) -> const unsigned char* {
        if (which == '0') return zeros;
        if (which == '1') return ones;
        return which == 'a' ? o.a : which == 'b' ? o.b : o.c;
      };
      unsigned char expected[64] = {};
      for (std::size_t i = 0; i < form.lanes * form.lane_bytes; ++i)
        expected[i] = operand((o.k >> i / form.lane_bytes & 1) != 0 ? form.yes : form.no)[i];
      const Result found = run(named(cases(kEmulated), form.name), o);
      ASSERT_EQ(hex(found.bytes, 64), hex(expected, 64)) << form.name << " with mask " << o.k;
    }
  }
  // Lanes beyond those of the form stay unchanged.
  const Operands o = random.operands();
  const Result found = run(named(cases(kEmulated), "256:mask_storeu_epi8"), o);
  EXPECT_EQ(hex(found.bytes + 32, 32), hex(o.c + 32, 32));
}

// By hand, from the operations in Intel's manual. Also run on the CPU's own instructions, where it has them.
class ByHand : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string without = lacking_avx2(); !without.empty())
      GTEST_SKIP() << "THE EMULATION IS NOT TESTED HERE: the CPU lacks " << without;
    for (int i = 0; i < 64; ++i) {
      o_.a[i] = static_cast<unsigned char>(i);
      o_.b[i] = static_cast<unsigned char>(63 - i);
      o_.c[i] = static_cast<unsigned char>(0x80 + i);
    }
  }
  template <class T>
  static void put(unsigned char* bytes, std::initializer_list<T> values) {
    std::memset(bytes, 0, 64);
    std::memcpy(bytes, values.begin(), values.size() * sizeof(T));
  }
  // The first lanes of the result.
  template <class T>
  void expect(const char* name, std::initializer_list<T> expected) const {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(expected.begin());
    const std::size_t count = expected.size() * sizeof(T);
    each_set(name, [&](const Result& r) { EXPECT_EQ(hex(r.bytes, count), hex(bytes, count)); });
  }
  // The bytes at `places`.
  void expect_at(const char* name, std::initializer_list<std::size_t> places,
                 const std::vector<int>& expected) const {
    each_set(name, [&](const Result& r) {
      std::vector<int> found;
      for (const std::size_t place : places) found.push_back(r.bytes[place]);
      EXPECT_EQ(found, expected);
    });
  }
  Operands o_{};

 private:
  template <class Check>
  void each_set(const char* name, const Check& check) const {
    const auto run_of = [&](const Cases& set, const char* which) {
      SCOPED_TRACE(std::string(which) + " " + name);
      check(run(named(cases(set), name), o_));
    };
    run_of(kEmulated, "emulated");
    if (lacking_avx512().empty()) run_of(kReal, "real");
  }
};
using Byte = unsigned char;

TEST_F(ByHand, ExpandTakesTheNextByteForEachBit) {
  o_.k = 0b10110;
  expect<Byte>("mask_expand_epi8", {0x80, 0, 1, 0x83, 2, 0x85, 0x86});
  expect<Byte>("maskz_expand_epi8", {0, 0, 1, 0, 2, 0, 0});
  o_.k = ~std::uint64_t{0};
  expect<Byte>("mask_expand_epi8", {0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_F(ByHand, CompressPutsBytesSideBySide) {
  o_.k = 1ull << 63 | 0b10110;
  expect<Byte>("mask_compress_epi8", {1, 2, 4, 63, 0x84, 0x85});
  expect<Byte>("maskz_compress_epi8", {1, 2, 4, 63, 0, 0});
}

TEST_F(ByHand, PermutesLookAtTheLowBitsOfAnIndex) {
  put<Byte>(o_.a, {63, 0, 64, 0xff, 1, 0x41});
  expect<Byte>("permutexvar_epi8", {0, 63, 63, 0, 62, 62, 63});
  put<std::uint32_t>(o_.a, {15, 0, 16, 0xfffffff1u});
  put<std::uint32_t>(o_.b, {100, 101, 102, 103});
  expect<std::uint32_t>("permutexvar_epi32", {0, 100, 100, 101, 100});
  expect<std::uint32_t>("permutexvar_ps", {0, 100, 100, 101, 100});
}

TEST_F(ByHand, PermutesOfTwoChooseByTheBitAbove) {
  put<std::uint32_t>(o_.a, {10, 11, 12});
  put<std::uint32_t>(o_.b, {0, 16, 17, 33, 48, 2});
  put<std::uint32_t>(o_.c, {20, 21, 22});
  expect<std::uint32_t>("permutex2var_epi32", {10, 20, 21, 11, 20, 12, 10});
  expect<std::uint32_t>("permutex2var_ps", {10, 20, 21, 11, 20, 12, 10});
  put<Byte>(o_.b, {0, 64, 127, 128, 191});
  put<Byte>(o_.c, {20, 21, 22});
  expect<Byte>("permutex2var_epi8", {10, 20, 0, 10, 0});
}

TEST_F(ByHand, WordsAndQuadsArePermutedLikewise) {
  put<std::uint16_t>(o_.a, {31, 0, 32, 33});
  put<std::uint16_t>(o_.b, {100, 101});
  expect<std::uint16_t>("permutexvar_epi16", {0, 100, 100, 101, 100});
  put<std::uint64_t>(o_.a, {7, 1, 8});
  put<std::uint64_t>(o_.b, {100, 101});
  expect<std::uint64_t>("permutexvar_epi64", {0, 101, 100, 100});
  put<std::uint16_t>(o_.a, {10, 11});
  put<std::uint16_t>(o_.b, {1, 32, 33, 64});
  put<std::uint16_t>(o_.c, {20, 21});
  expect<std::uint16_t>("permutex2var_epi16", {11, 20, 21, 10, 10});
}

TEST_F(ByHand, PartsAreTakenPutAndRepeated) {
  expect<Byte>("extracti32x4(2)", {32, 33});
  expect<Byte>("extractf32x4(3)", {48, 49});
  expect<Byte>("extracti64x4(1)", {32, 33});
  expect<Byte>("extractf32x8(1)", {32, 33});
  expect<Byte>("extracti32x8(0)", {0, 1});
  expect_at("inserti64x4(1)", {31, 32, 63}, {32, 0, 31});
  expect_at("inserti32x8(0)", {0, 31, 32}, {0, 31, 31});
  expect_at("broadcast_i32x4", {0, 15, 16, 63}, {0, 15, 0, 15});
  expect_at("broadcast_i64x4", {0, 31, 32, 63}, {0, 31, 0, 31});
  expect_at("zextsi128_si512", {15, 16, 63}, {15, 0, 0});
  expect_at("castsi512_si256", {0, 31}, {0, 31});
  o_.a[0] = 7;
  expect_at("broadcastb_epi8", {0, 1, 63}, {7, 7, 7});
  expect_at("broadcastw_epi16", {0, 1, 62, 63}, {7, 1, 7, 1});
  expect_at("broadcastd_epi32", {0, 3, 60, 63}, {7, 3, 7, 3});
  expect_at("broadcastq_epi64", {0, 7, 56, 63}, {7, 7, 7, 7});
}

TEST_F(ByHand, Constants) {
  o_.k = 0x1122334455667788;
  expect<Byte>("set1_epi8", {0x88, 0x88});
  expect<std::uint16_t>("set1_epi16", {0x7788, 0x7788});
  expect<std::uint32_t>("set1_epi32", {0x55667788, 0x55667788});
  expect<std::uint64_t>("set1_epi64", {o_.k, o_.k});
  expect<float>("set1_ps", {136, 136});
  expect<std::uint32_t>("set4_epi32", {0x55667788, 2, 3, 4, 0x55667788, 2});
  expect<std::uint32_t>("setr_epi32", {0x55667788, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  expect<std::uint64_t>("set_epi64", {o_.k, 1, 2, 3, 4, 5, 6, 7});
  expect<Byte>("maskz_set1_epi8", {0, 0, 0, 5, 0, 0, 0, 5, 5, 5, 5, 0, 5, 5, 5, 0});
}

TEST_F(ByHand, WordsShiftedByTheirWidthAreNothing) {
  put<std::uint16_t>(o_.a, {0x8001, 0x8001, 0x8001, 0x8001});
  put<std::uint16_t>(o_.b, {1, 15, 16, 0x0100});
  expect<std::uint16_t>("sllv_epi16", {2, 0x8000, 0, 0});
  expect<std::uint16_t>("srlv_epi16", {0x4000, 1, 0, 0});
}

TEST_F(ByHand, SumsOfAllLanes) {
  put<std::int32_t>(o_.a, {0x7fffffff, 1, 2, -5});
  expect<std::int32_t>("reduce_add_epi32", {static_cast<std::int32_t>(0x80000000u - 3u)});
  // 1 and 2^-24 eight lanes apart are added first, then the other 2^-24, and so on: each a tie, to even.
  put<float>(o_.a, {1, 0x1p-24f, 0, 0, 0, 0, 0, 0, 0x1p-24f});
  expect<float>("reduce_add_ps", {1});
}

TEST_F(ByHand, MultishiftTurnsAroundTheEnd) {
  put<Byte>(o_.a, {0, 4, 8, 60, 64 + 4, 63});
  put<std::uint64_t>(o_.b, {0xfedcba9876543210u});
  expect<Byte>("multishift_epi64_epi8", {0x10, 0x21, 0x32, 0x0f, 0x21, 0x21, 0x10, 0x10});
}

TEST_F(ByHand, QuartersAreShuffled) {
  // Quarter q of a begins with 16q, quarter q of b with 63 − 16q.
  expect_at("shuffle_i32x4(0x88)", {0, 16, 32, 48}, {0, 32, 63, 31});
  expect_at("shuffle_i32x4(0xdd)", {0, 16, 32, 48}, {16, 48, 47, 15});
  expect_at("shuffle_f32x4(0x1b)", {0, 16, 32, 48}, {48, 32, 47, 63});
  expect_at("inserti32x4(3)", {47, 48, 63}, {16, 0, 15});
}

TEST_F(ByHand, NarrowingDropsHighBitsOrSaturates) {
  put<std::uint32_t>(o_.a, {0x12345678, 0xffffff80, 127, 128, 0x80000000});
  expect<Byte>("cvtepi32_epi8", {0x78, 0x80, 127, 128, 0});
  expect<Byte>("cvtsepi32_epi8", {127, 0x80, 127, 127, 0x80});
  expect<Byte>("cvtusepi32_epi8", {255, 255, 127, 128, 255});
  expect<std::uint16_t>("cvtepi32_epi16", {0x5678, 0xff80, 127, 128, 0});
  o_.k = 0b10110;
  put<std::uint16_t>(o_.a, {0x1234, 0x5678, 0x9abc, 0xdef0, 0x1122});
  expect<Byte>("maskz_cvtepi16_epi8", {0, 0x78, 0xbc, 0, 0x22});
}

TEST_F(ByHand, FourProductsAreExactAndTheirSumWrapsOrSaturates) {
  put<std::int32_t>(o_.a, {0x7fffffff, -0x7fffffff - 1, 5});
  put<Byte>(o_.b, {255, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4});
  put<std::int8_t>(o_.c, {127, 127, 127, 127, -128, -128, -128, -128, 1, -1, 1, -1});
  // 4·255·127 exceeds 16 bits: no intermediate result saturates.
  expect<std::int32_t>("dpbusd_epi32", {static_cast<std::int32_t>(0x7fffffffu + 129540u),
                                        static_cast<std::int32_t>(0x80000000u - 130560u), 3});
  expect<std::int32_t>("dpbusds_epi32", {0x7fffffff, -0x7fffffff - 1, 3});
  expect<std::int32_t>("256:dpbusd_epi32", {static_cast<std::int32_t>(0x7fffffffu + 129540u),
                                            static_cast<std::int32_t>(0x80000000u - 130560u), 3});
  expect<std::int32_t>("256:dpbusds_epi32", {0x7fffffff, -0x7fffffff - 1, 3});
  // maddubs saturates each pair; madd wraps only for four times −32768.
  put<Byte>(o_.a, {255, 255, 255, 255, 1, 2});
  put<std::int8_t>(o_.b, {127, 127, -128, -128, 3, -4});
  expect<std::int16_t>("maddubs_epi16", {32767, -32768, -5});
  put<std::int16_t>(o_.a, {-32768, -32768, 3, 4});
  put<std::int16_t>(o_.b, {-32768, -32768, -5, 6});
  expect<std::int32_t>("madd_epi16", {-0x7fffffff - 1, 9});
}

constexpr std::uint16_t bf16(float number) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16);
}

TEST_F(ByHand, PairsAreAddedOddFirst) {
  // 1 + 2^-24 is 1 (a tie, to even), so 2^-24 twice adds nothing to 1, and counts if it comes first.
  put<std::uint16_t>(o_.a, {bf16(1), bf16(0x1p-24f), bf16(0x1p-24f), bf16(1)});
  put<std::uint16_t>(o_.b, {bf16(1), bf16(1), bf16(1), bf16(1)});
  put<float>(o_.c, {0x1p-24f, 0x1p-24f});
  expect<float>("dpbf16_ps", {1 + 0x1p-23f, 1});
}

TEST_F(ByHand, PairsTakeSubnormalNumbersForZeros) {
  put<std::uint16_t>(o_.a, {0x0001, 0, 0x0080, 0, 0x8080, 0, bf16(1), 0, 0x0080, 0});
  put<std::uint16_t>(o_.b, {bf16(0x1p20f), 0, bf16(0.5f), 0, bf16(0.5f), 0, bf16(0x1p-126f), 0, bf16(1), 0});
  put<float>(o_.c, {0, 0, -0.0f, 0x1p-127f, -0x1.8p-126f});
  // Subnormal: an input; a result (and so its sign); the running sum; a result of two numbers that are not
  // subnormal.
  expect<float>("dpbf16_ps", {0, 0, -0.0f, 0x1p-126f, -0.0f});
  // 2^-126 less 2^-152, 2^-151 and 1.5·2^-151. Rounded to 24 bits, the second is a tie, to even; the third is
  // less than 2^-126, which it would not be if it were rounded as a subnormal number.
  put<std::uint16_t>(o_.a, {0, bf16(0x1p-64f), 0, bf16(0x1p-64f), 0, bf16(0x1.8p-64f)});
  put<std::uint16_t>(o_.b, {0, bf16(-0x1p-88f), 0, bf16(-0x1p-87f), 0, bf16(-0x1p-87f)});
  put<float>(o_.c, {0x1p-126f, 0x1p-126f, 0x1p-126f});
  expect<float>("dpbf16_ps", {0x1p-126f, 0x1p-126f, 0});
}

TEST_F(ByHand, RoundingToBf16) {
  put<std::uint32_t>(o_.a, {0x3f808000, 0x3f818000, 0x3f808001, 0x3f807fff, 0x7f7fffff, 0x7f800001,
                            0xff800000, 0x807fffff, 0x00800000});
  expect<std::uint16_t>("cvtneps_pbh",
                        {0x3f80, 0x3f82, 0x3f81, 0x3f80, 0x7f80, 0x7fc0, 0xff80, 0x8000, 0x0080});
}

TEST_F(ByHand, HalfPrecision) {
  put<std::uint16_t>(o_.a, {0x0001, 0x8000, 0x3c00, 0x7bff, 0xfc00, 0x0400});
  expect<float>("cvtph_ps", {0x1p-24f, -0.0f, 1, 65504, -INFINITY, 0x1p-14f});
}

TEST(Tiles, AreWhatTheInstructionsAre) {
  if (const std::string without = lacking_amx(); !without.empty())
    GTEST_SKIP() << "THE EMULATION IS NOT COMPARED WITH AMX HERE: the CPU lacks " << without;
  const std::uint64_t seed = new_seed();
  RandomOperands random(seed);
  for (int trial = 0; trial < kTrials; ++trial) {
    TileOperands o;
    o.rows = 1 + random() % 16;
    o.columns = 1 + random() % 16;
    o.depth = 1 + random() % 16;
    random.fill({&o.x[0][0], sizeof(o.x)});
    random.fill({&o.y[0][0], sizeof(o.y)});
    random.fill({&o.sums[0][0], sizeof(o.sums)});
    for (std::size_t i = 0; i < kEmulatedTiles.count; ++i) {
      TileOperands found = o, expected = o;
      kEmulatedTiles.first[i].run(found);
      kRealTiles.first[i].run(expected);
      ASSERT_TRUE(
          equal(kEmulatedTiles.first[i].equal, &found.sums[0][0], &expected.sums[0][0], sizeof(o.sums)))
          << kEmulatedTiles.first[i].name << ", seed " << seed << ", trial " << trial;
    }
  }
}

class TilesByHand : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string without = lacking_avx2(); !without.empty())
      GTEST_SKIP() << "THE EMULATION IS NOT TESTED HERE: the CPU lacks " << without;
  }
  // Runs the check on the emulation, and on the CPU's own instructions where it has them.
  template <class Check>
  static void each_unit(const char* name, const TileOperands& o, const Check& check) {
    int runs = 0;
    for (const TileCases& unit : {kEmulatedTiles, kRealTiles}) {
      if (unit.first == kRealTiles.first && !lacking_amx().empty()) continue;
      for (const TileCase& c : cases(unit)) {
        if (std::string_view(c.name) != name) continue;
        TileOperands after = o;
        c.run(after);
        check(after);
        ++runs;
      }
    }
    EXPECT_EQ(runs, lacking_amx().empty() ? 2 : 1) << name;
  }
  static void put(unsigned char (&to)[16][64], unsigned row, unsigned word, float number) {
    const std::uint16_t bits = bf16(number);
    std::memcpy(&to[row][2 * word], &bits, sizeof(bits));
  }
};

// Four numbers in two chains: first the even words of rows 0, 1, 2, then the odd words.
TEST_F(TilesByHand, ChainsOfEvenAndOddWordsBeginAtZero) {
  TileOperands o{};
  o.rows = 1;
  o.columns = 1;
  o.depth = 3;
  const float even[] = {1, 0x1p-24f, 0x1p-24f}, odd[] = {0x1p-24f, 0x1p-24f, 1};
  for (unsigned k = 0; k < 3; ++k) {
    put(o.x, 0, 2 * k, even[k]);
    put(o.x, 0, 2 * k + 1, odd[k]);
    put(o.y, k, 0, 1);
    put(o.y, k, 1, 1);
  }
  const float before = 0x1p-23f;
  std::memcpy(o.sums[0], &before, sizeof(before));
  // Even: 1 + 2^-24 + 2^-24 = 1. Odd: 2^-23 + 1. Their sum 2 + 2^-23 is a tie, to 2; adding 2^-23 is another
  // tie.
  each_unit("dpbf16ps", o, [](const TileOperands& after) { EXPECT_EQ(float_at(after.sums[0], 0), 2.0f); });
  const float more = 0x1.8p-23f;
  std::memcpy(o.sums[0], &more, sizeof(more));
  each_unit("dpbf16ps", o,
            [](const TileOperands& after) { EXPECT_EQ(float_at(after.sums[0], 0), 2 + 0x1p-22f); });
}

TEST_F(TilesByHand, BytesAreSignedOrNotAsTheNameSays) {
  TileOperands o{};
  o.rows = 2;
  o.columns = 1;
  o.depth = 2;
  // Row 0: 255 or −1 four times in each of two dwords; row 1: 1 once.
  std::memset(o.x[0], 0xff, 8);
  o.x[1][5] = 1;
  std::memset(o.y[0], 0xfe, 4);
  std::memset(o.y[1], 0xfd, 4);
  const std::int32_t before = 10;
  std::memcpy(o.sums[0], &before, sizeof(before));
  const auto expect = [&](const char* name, std::int32_t row0, std::int32_t row1) {
    each_unit(name, o, [&](const TileOperands& after) {
      std::int32_t sums[2];
      std::memcpy(&sums[0], after.sums[0], 4);
      std::memcpy(&sums[1], after.sums[1], 4);
      EXPECT_EQ(sums[0], row0) << name;
      EXPECT_EQ(sums[1], row1) << name;
    });
  };
  expect("dpbssd", 10 + 4 * (2 + 3), -3);
  expect("dpbsud", 10 - 4 * (254 + 253), 253);
  expect("dpbusd", 10 + 4 * 255 * (-2 - 3), -3);
  expect("dpbuud", 10 + 4 * 255 * (254 + 253), 253);
}

// Writes only the bytes of the shapes.
TEST_F(TilesByHand, StoresHaveTheirRowsAndBytes) {
  TileOperands o{};
  o.rows = 3;
  o.columns = 2;
  o.depth = 1;
  std::memset(o.sums, 0x55, sizeof(o.sums));
  each_unit("zero", o, [](const TileOperands& after) {
    for (std::size_t r = 0; r < 16; ++r) {
      for (std::size_t i = 0; i < 64; ++i)
        EXPECT_EQ(after.sums[r][i], r < 3 && i < 8 ? 0 : 0x55) << r << " " << i;
    }
  });
}

TEST(TilesDeathTest, WhatRaisesAnExceptionEndsTheProgram) {
  if (const std::string without = lacking_avx2(); !without.empty())
    GTEST_SKIP() << "THE EMULATION IS NOT TESTED HERE: the CPU lacks " << without;
  TileOperands o{};
  o.rows = 17;
  o.columns = 1;
  o.depth = 1;
  EXPECT_DEATH(kEmulatedTiles.first[0].run(o), "16 rows");
  o.rows = 0;
  EXPECT_DEATH(kEmulatedTiles.first[0].run(o), "rows and bytes");
}

}  // namespace
}  // namespace sluice::emulation
