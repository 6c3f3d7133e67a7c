#include "base/machine/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

#include "base/error.h"

namespace sluice {
namespace {

TEST(Cpu, ScalarIsAlwaysAvailableAndFirst) {
  const std::vector<Isa> isas = available_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::kScalar);
  EXPECT_TRUE(std::is_sorted(isas.begin(), isas.end()));
  EXPECT_EQ(best_isa(), isas.back());
}

TEST(Cpu, TheMakerIsTheKernels) {
  std::ifstream file("/proc/cpuinfo");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(cpu_is_intel(), text.str().find("GenuineIntel") != std::string::npos);
}

TEST(Cpu, AutoIsTheBest) { EXPECT_EQ(parse_isa("auto"), best_isa()); }

TEST(Cpu, AvailableNamesParseAndOthersAreRefused) {
  const std::vector<Isa> available = available_isas();
  const auto all = {Isa::kScalar,     Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vbmi2,
                    Isa::kAvx512Bf16, Isa::kAmx,  Isa::kNeon};
  for (const Isa isa : all) {
    const std::string_view name = isa_name(isa);
    if (std::find(available.begin(), available.end(), isa) != available.end()) {
      EXPECT_EQ(parse_isa(name), isa);
      continue;
    }
    try {
      parse_isa(name);
      ADD_FAILURE() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage) << name;
      EXPECT_NE(std::string(e.what()).find("this CPU"), std::string::npos) << e.what();
    }
  }
  for (const char* name : {"", "AVX2", "sse", "avx512vnni", "avx512vbmi2", "avx512bf16", "avx2 "}) {
    try {
      parse_isa(name);
      ADD_FAILURE() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage) << name;
      for (const Isa isa : all) {  // those that this CPU has, and no other
        const bool is_there = std::find(available.begin(), available.end(), isa) != available.end();
        const std::regex word("\\b" + std::string(isa_name(isa)) + "\\b");
        EXPECT_EQ(std::regex_search(e.expected_text(), word), is_there) << isa_name(isa);
      }
    }
  }
}

TEST(Cpu, NamesAreDistinct) {
  EXPECT_EQ(isa_name(Isa::kScalar), "scalar");
  EXPECT_EQ(isa_name(Isa::kAvx2), "avx2");
  EXPECT_EQ(isa_name(Isa::kAvx512), "avx512");
  EXPECT_EQ(isa_name(Isa::kAvx512Vbmi2), "avx512_vbmi2");
  EXPECT_EQ(isa_name(Isa::kAvx512Bf16), "avx512_bf16");
  EXPECT_EQ(isa_name(Isa::kAmx), "amx");
  EXPECT_EQ(isa_name(Isa::kNeon), "neon");
}

#if defined(__x86_64__)
// Oracle: the kernel's own list, which leaves out what it does not save on a context switch.
TEST(Cpu, FeaturesAgreeWithProcCpuinfo) {
  std::ifstream file("/proc/cpuinfo");
  std::vector<std::string> flags;
  std::string model;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("flags")) {
      std::istringstream words(line.substr(colon + 2));
      for (std::string word; words >> word;) flags.push_back(word);
      break;
    }
    if (line.starts_with("model name")) model = line.substr(colon + 2);
  }
#if defined(__x86_64__)
  ASSERT_FALSE(flags.empty());
#else
  if (flags.empty()) GTEST_SKIP() << "only x86 lists its features as flags in /proc/cpuinfo";
#endif
  const CpuInfo info = cpu_info();
  const auto listed = [](const std::vector<std::string>& list, const char* name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  const std::pair<const char*, const char*> names[] = {{"sse4_2", "sse4_2"},
                                                       {"avx", "avx"},
                                                       {"fma", "fma"},
                                                       {"f16c", "f16c"},
                                                       {"bmi2", "bmi2"},
                                                       {"avx2", "avx2"},
                                                       {"avx_vnni", "avx_vnni"},
                                                       {"avx512f", "avx512f"},
                                                       {"avx512dq", "avx512dq"},
                                                       {"avx512bw", "avx512bw"},
                                                       {"avx512vl", "avx512vl"},
                                                       {"avx512vbmi", "avx512vbmi"},
                                                       {"avx512vbmi2", "avx512_vbmi2"},
                                                       {"avx512vnni", "avx512_vnni"},
                                                       {"avx512bf16", "avx512_bf16"},
                                                       {"avx512fp16", "avx512_fp16"},
                                                       {"amx_tile", "amx_tile"},
                                                       {"amx_bf16", "amx_bf16"},
                                                       {"amx_int8", "amx_int8"}};
  for (const auto& [ours, kernels] : names) {
    EXPECT_EQ(listed(info.features, ours), listed(flags, kernels)) << ours;
  }
  EXPECT_FALSE(info.model.empty());
  if (!model.empty()) {
    EXPECT_EQ(info.model, model);
  }
}
#endif

}  // namespace
}  // namespace sluice
