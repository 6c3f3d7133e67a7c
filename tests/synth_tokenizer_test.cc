// Synthetic models with a tokenizer, through the built program: prompts are text.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/json/json.h"
#include "bundled_model.h"
#include "scratch_test.h"

namespace {

using sluice::program::kModel;
using sluice::program::Outcome;
using sluice::program::run;

class SynthTokenizer : public sluice::testing::ScratchTest {
 protected:
  void SetUp() override {
    ScratchTest::SetUp();
    write_config(6405);
    // The bundled model's tokenizer has no template.
    std::filesystem::create_directory(file("tokenizer"));
    for (const char* const name : {"tokenizer.json", "tokenizer_config.json"})
      std::filesystem::copy(kModel + "/" + name, file("tokenizer"));
    std::ofstream(file("tokenizer/chat_template.jinja"))
        << "{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}";
  }
  void write_config(int rows) const {
    std::ofstream(file("config.json"))
        << R"({"model_type": "qwen3_moe", "hidden_size": 64, "head_dim": 16, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64, "moe_intermediate_size": 32,
          "num_experts": 4, "num_experts_per_tok": 2, "norm_topk_prob": true, "rope_theta": 10000.0,
          "max_position_embeddings": 512, "tie_word_embeddings": false, "vocab_size": )"
        << rows << "}";
  }
  Outcome synth(const std::string& flags) const {
    return run("synth " + file("config.json") + " -q " + flags);
  }
};

std::string printed(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(outcome.out.empty());
  return outcome.out;
}

TEST_F(SynthTokenizer, TextIsAPromptOfBothKindsOfModels) {
  const std::string directory = file("model"), gguf = file("model.gguf");
  const std::string tokenizer = " --tokenizer " + file("tokenizer");
  ASSERT_EQ(synth("-o " + directory + tokenizer).code, 0);
  const Outcome made = synth("-o " + gguf + " --format bf16" + tokenizer);
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string prompt = " -p 'The sea was calm, and the old man' -n 8 --temp 0 --ignore-eos -q";
  EXPECT_EQ(printed(run("run " + gguf + prompt)), printed(run("run " + directory + prompt)));
  const std::string conversation = printed(run("template " + gguf + " -p Hello"));
  EXPECT_EQ(conversation, printed(run("template " + directory + " -p Hello")));
  EXPECT_NE(conversation.find("<|im_start|>user: Hello<|im_end|>"), conversation.npos) << conversation;
  const std::string chat = " -p Hello -n 8 --temp 0 -q";
  EXPECT_EQ(run("chat " + gguf + chat).code, run("chat " + directory + chat).code);
}

TEST_F(SynthTokenizer, ATokenizerThatDoesNotFitIsAnErrorBeforeAnythingIsWritten) {
  write_config(6399);
  for (const std::string& flags : {"-o " + file("m"), "-o " + file("m") + " --format q8_0"}) {
    const Outcome larger = synth(flags + " --tokenizer " + file("tokenizer"));
    EXPECT_EQ(larger.code, 2);
    EXPECT_NE(larger.err.find("--tokenizer: the tokenizer has more tokens than the model has rows for them; "
                              "expected at most 6399 tokens"),
              std::string::npos)
        << larger.err;
    const Outcome none = synth(flags + " --tokenizer " + file("nothing"));
    EXPECT_EQ(none.code, 1);
    EXPECT_NE(none.err.find("no tokenizer"), std::string::npos) << none.err;
    EXPECT_FALSE(std::filesystem::exists(file("m")));
  }
}

}  // namespace
