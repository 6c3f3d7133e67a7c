// Each published template is of the family whose calls it writes (data/chat; SLUICE_CHAT_TEMPLATES).
#include "tokenizer/chat/calls/family.h"

#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>
#include <string>

#include "base/error_of.h"
#include "tokenizer/chat/published_templates.h"

namespace sluice::tokenizer {
namespace {

// Templates of models that have a format which is none of ours, or none at all, are not listed: hermes.
const std::map<std::string, std::string>& families() {
  static const std::map<std::string, std::string> kFamilies = {
      {"GLM-4.6", "glm"},
      {"GLM-4.7-Flash", "glm"},
      {"Kimi-K2-Instruct", "kimi-k2"},
      {"Kimi-K2-Thinking", "kimi-k2"},
      {"MiniMax-M2", "minimax"},
      {"Mistral-Small-3.2-24B-Instruct-2506", "mistral-v11"},
      {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "qwen-xml"},
      {"Qwen3-Coder", "qwen-xml"},
      {"Qwen3.5-4B", "qwen-xml"},
      {"StepFun3.5-Flash", "qwen-xml"},
      {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "deepseek-v3"},
      {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek-v3"},
      {"deepseek-ai-DeepSeek-V3.1", "deepseek-v3.1"},
      {"deepseek-ai-DeepSeek-V3.2", "deepseek-v3.2"},
      {"llama-cpp-deepseek-r1", "deepseek-v3"},
      {"mistralai-Ministral-3-14B-Reasoning-2512", "mistral-v11"},
      {"mistralai-Mistral-Nemo-Instruct-2407", "mistral-v3"},
      {"moonshotai-Kimi-K2", "kimi-k2"},
      {"openai-gpt-oss-120b", "harmony"},
      {"stepfun-ai-Step-3.5-Flash", "qwen-xml"},
      {"unsloth-mistral-Devstral-Small-2507", "mistral-v11"},
  };
  return kFamilies;
}

TEST(CallFamily, IsFoundForPublishedTemplates) {
  std::size_t known = 0, left_out = 0;
  for (const std::string& name : test::published_template_names()) {
    const auto source = test::published_template(name);
    if (!source) {
      ++left_out;
      continue;
    }
    const auto expected = families().find(name);
    known += expected != families().end() ? 1 : 0;
    EXPECT_EQ(detected_call_family(*source).name, expected == families().end() ? "hermes" : expected->second)
        << name;
  }
  std::cout << left_out << " templates left out (not among our files)\n";
  EXPECT_GE(known, 12u);
}

TEST(CallFamily, IsGivenByName) {
  std::set<std::string_view> names;
  for (const CallFamily& family : call_families()) {
    EXPECT_EQ(&call_family(family.name), &family);
    EXPECT_TRUE(names.insert(family.name).second);
  }
  EXPECT_EQ(answer_format("<think> [TOOL_CALLS]", "glm").family->name, "glm");
  EXPECT_EQ(answer_format("<think> [TOOL_CALLS]").family->name, "mistral-v3");
  EXPECT_EQ(answer_format("<think> [TOOL_CALLS]").reasoning.end, "</think>");
  EXPECT_EQ(answer_format("").family->name, "hermes");
  EXPECT_EQ(answer_format("").reasoning.begin, "");
  const std::string error = testing::error_of([] { call_family("hermess"); });
  EXPECT_NE(error.find("--tool-format"), std::string::npos) << error;
  for (const std::string_view name : names) EXPECT_NE(error.find(name), std::string::npos) << error;
}

}  // namespace
}  // namespace sluice::tokenizer
