// What a policy is like stands in its row of the registry. Nobody asks for its name to know that: a policy of
// another name could not be the same then.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "experts/device_presets.h"
#include "experts/registry.h"
#include "source_text.h"

namespace sluice {
namespace {

// A file, and what its names are names of.
const std::map<std::string, std::string> kMay = {
    {"src/reproduce/zipmoe/exponents.cc", "codecs of exponents"},
};

std::set<std::string> policy_names() {
  std::set<std::string> names;
  const auto add = [&](const auto& rows) {
    for (const auto& row : rows) names.emplace(row.name);
  };
  add(experts::cache_policies());
  add(experts::router_policies());
  add(experts::prefetch_policies());
  add(experts::scheduler_policies());
  add(experts::placement_policies());
  add(experts::presets());
  add(experts::device_presets());
  return names;
}

// The names of policies that this text compares with something that holds one.
std::vector<std::string> compared(const std::string& text) {
  static const std::set<std::string> kNames = policy_names();
  static const std::string kHolder =
      R"((?:(?:->|\.)name|\b(?:\w+_)?(?:router|cache|scheduler|prefetch|placement|preset|policy|rule))_?(?:\(\))?)";
  static const std::regex kCompared[] = {
      std::regex(kHolder + R"(\s*[!=]=\s*[\w:]*\(?"([^"\s]{1,40})\")"),
      std::regex(R"lit("([^"\s]{1,40})"\)?\s*[!=]=\s*[\w.>()-]*?)lit" + kHolder)};
  std::vector<std::string> found;
  for (const std::regex& pattern : kCompared)
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
      if (kNames.contains((*at)[1].str())) found.push_back((*at)[1].str());
  return found;
}

bool is_code(const std::filesystem::path& path) {
  const std::string stem = path.stem();
  if (path.extension() != ".cc" && path.extension() != ".h") return false;
  return !stem.ends_with("_test") && !stem.ends_with("_fuzz") && !stem.ends_with("_fixture");
}

TEST(PoliciesToldApart, TheSearchFindsComparisons) {
  for (const char* line :
       {R"(if (chosen.router->name == "smoe") return;)", R"(a = settings_.prefetch != "none";)",
        R"(if (rule ==
              "cache-prior"))",
        R"(return prefetch_ == "stream";)", R"(p->name() != "none")", R"(if ("lru" == plan.device_cache))",
        R"(cache->name() == std::string_view("lru"))"})
    EXPECT_EQ(compared(line).size(), 1u) << line;
  for (const char* line : {R"(if (codec == "none"))", R"(options.router = "exact";)", R"(text == "auto")",
                           R"(if (options.name == "list"))", R"(find_cache("lru"))"})
    EXPECT_EQ(compared(line).size(), 0u) << line;
}

// The layers below know no policies.
TEST(PoliciesToldApart, ByTheirRowsAlone) {
  std::set<std::string> used;
  const std::size_t files = testing::each_source(
      {"src/experts", "src/trace", "src/fetch", "src/engine", "src/eval", "src/lab", "src/reproduce", "apps"},
      is_code, [&](const std::string& path, const std::string& text) {
        const std::vector<std::string> names = compared(text);
        if (names.empty()) return;
        used.insert(path);
        EXPECT_TRUE(kMay.contains(path))
            << path << " compares a policy's name with \"" << names.front()
            << "\": give the rows of the registry a member that says what the policy is like";
      });
  std::printf("%zu files\n", files);
  EXPECT_GT(files, 300u);
  for (const auto& [file, of] : kMay) EXPECT_TRUE(used.contains(file)) << file << " no longer does";
}

}  // namespace
}  // namespace sluice
