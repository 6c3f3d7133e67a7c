// A compiled tokenizer equals the tokenizer that was parsed.
#include "tokenizer/compiled_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "base/error.h"
#include "tokenizer/test_files.h"

namespace sluice::tokenizer {
namespace {

using testing::HasSubstr;

std::string compiled(const Tokenizer& tokenizer) {
  std::string description;
  return store::write_tables(kTokenizerTables, 7, written_tables(tokenizer.compile(), description));
}

std::unique_ptr<Tokenizer> load(const std::string& file) {
  return load_compiled_tokenizer(store::TableSidecar::of_bytes(std::as_bytes(std::span(file)), "t.bin"));
}

class CompiledTokenizer : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    parsed_ = test::load_golden_tokenizer(GetParam());
    ASSERT_NE(parsed_, nullptr);
    file_ = compiled(*parsed_);
    compiled_ = load(file_);
  }
  std::unique_ptr<Tokenizer> parsed_, compiled_;
  std::string file_;
};

TEST_P(CompiledTokenizer, EncodesAndDecodesAsTheReference) {
  const Json golden = test::golden(GetParam());
  ASSERT_GT(golden["encode"].size(), 100u);
  for (const Json& item : golden["encode"]) {
    const auto& text = item["text"].get_ref<const std::string&>();
    const auto ids = item["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(compiled_->encode(text, AddSpecial::kNo), ids) << text;
    EXPECT_EQ(compiled_->encode(text, AddSpecial::kYes), parsed_->encode(text, AddSpecial::kYes)) << text;
    EXPECT_EQ(compiled_->decode(ids, ShowSpecial::kNo), item["decoded"].get<std::string>());
  }
}

TEST_P(CompiledTokenizer, KnowsEveryToken) {
  ASSERT_EQ(compiled_->vocab_size(), parsed_->vocab_size());
  for (std::size_t i = 0; i < parsed_->vocab_size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string text = parsed_->decode({{id}}, ShowSpecial::kYes);
    ASSERT_EQ(compiled_->decode({{id}}, ShowSpecial::kYes), text) << id;
    ASSERT_EQ(compiled_->is_special(id), parsed_->is_special(id)) << id;
    ASSERT_EQ(compiled_->id_of(text), parsed_->id_of(text)) << text;
  }
}

TEST_P(CompiledTokenizer, AgreesOnTextsNobodyWrote) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<TokenId> ids(1 + random() % 60);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % parsed_->vocab_size());
    const std::string text = parsed_->decode(ids, ShowSpecial::kYes);
    ASSERT_EQ(compiled_->encode(text, AddSpecial::kNo), parsed_->encode(text, AddSpecial::kNo)) << seed;
    ASSERT_EQ(compiled_->decode(ids, ShowSpecial::kNo), parsed_->decode(ids, ShowSpecial::kNo)) << seed;
  }
}

TEST_P(CompiledTokenizer, IsTheSameFileEveryTime) {
  EXPECT_EQ(compiled(*test::load_golden_tokenizer(GetParam())), file_);
}

INSTANTIATE_TEST_SUITE_P(All, CompiledTokenizer,
                         testing::Values("fable", "qwen3", "qwen2_vocab_merges", "olmoe", "mistral_v1",
                                         "mistral_v2", "mistral_v3", "deepseek", "llama_spm", "metaspace",
                                         "normalized", "llama3", "o200k", "sp_collapse", "sp_plain",
                                         "sp_unused", "unigram", "switch"),
                         [](const auto& info) { return std::string(info.param); });

// Small tokenizers of each type with changed tables; the checksums fit, as in a deliberate attack.
class HostileTables : public testing::TestWithParam<const char*> {
 protected:
  // The file with table `name` changed by `change`.
  std::string changed(const std::string& name, const std::function<void(std::string&)>& change) {
    const auto tokenizer = test::load_golden_tokenizer(GetParam());
    std::string description, bytes;
    std::vector<store::NamedTable> tables = written_tables(tokenizer->compile(), description);
    for (store::NamedTable& table : tables) {
      if (table.name != name) continue;
      bytes.assign(reinterpret_cast<const char*>(table.bytes.data()), table.bytes.size());
      change(bytes);
      table.bytes = std::as_bytes(std::span(bytes));
      return store::write_tables(kTokenizerTables, 7, tables);
    }
    return {};
  }
  std::vector<std::string> names() {
    const auto tokenizer = test::load_golden_tokenizer(GetParam());
    std::vector<std::string> names;
    for (const store::NamedTable& table : tokenizer->compile().tables) names.emplace_back(table.name);
    return names;
  }
};

TEST_P(HostileTables, ShortTablesAreRefused) {
  for (const std::string& name : names()) {
    bool empty = false;
    const std::string file = changed(name, [&](std::string& table) {
      empty = table.empty();
      table.erase(table.size() - std::min<std::size_t>(4, table.size()));
    });
    if (empty) continue;
    EXPECT_THROW(load(file), Error) << name;
  }
}

TEST_P(HostileTables, IdsThatAreNoTokensAreRefused) {
  for (const char* name : {"slots", "reserved-slots", "bytes"}) {
    for (const TokenId id : {TokenId{-2}, TokenId{1 << 24}, std::numeric_limits<TokenId>::max()}) {
      const std::string file = changed(name, [&](std::string& table) {
        for (std::size_t at = 0; at + 4 <= table.size(); at += 4) std::memcpy(table.data() + at, &id, 4);
      });
      if (file.empty() || file == changed(name, [](std::string&) {})) continue;
      EXPECT_THROW(load(file), Error) << name << " " << id;
    }
  }
}

// A search in such a table would never end.
TEST_P(HostileTables, FullTablesAndCirclesAreRefused) {
  const std::string slots = changed("slots", [](std::string& table) {
    for (char& byte : table) byte = 0;
  });
  EXPECT_THROW(load(slots), Error);
  if (const std::string merges = changed("merges",
                                         [](std::string& table) {
                                           for (char& byte : table) byte = 0;
                                         });
      !merges.empty()) {
    EXPECT_THROW(load(merges), Error);
  }
  if (const std::string tree = changed("tree",
                                       [](std::string& table) {
                                         for (std::uint32_t node = 0; node * 16 < table.size(); ++node)
                                           std::memcpy(table.data() + node * 16 + 4, &node, 4);
                                       });
      !tree.empty()) {
    EXPECT_THROW(load(tree), Error);
  }
}

// Comparisons with such scores would have no order.
TEST_P(HostileTables, ScoresThatAreNoNumbersAreRefused) {
  const std::string file = changed("scores", [](std::string& table) { std::ranges::fill(table, '\xff'); });
  if (file.empty()) return;  // a tokenizer that merges by rank has no scores
  EXPECT_THROW(load(file), Error);
}

INSTANTIATE_TEST_SUITE_P(OfEachType, HostileTables, testing::Values("fable", "unigram", "sp_unused"),
                         [](const auto& info) { return std::string(info.param); });

// Each table is sound, but the search tree has tokens that the vocabulary lacks.
TEST(CompiledTokenizerFile, ATreeOfOtherTokensIsAnErrorWhereNoneIsUnknown) {
  const auto tokenizer = test::load_golden_tokenizer("unigram");
  TokenizerTables tables = tokenizer->compile();
  tables.description["unknown"] = nullptr;
  tables.description["byte_fallback"] = false;
  std::string text;
  for (store::NamedTable& table : tables.tables) {
    if (table.name != "text") continue;
    text.assign(table.bytes.size(), 'q');
    table.bytes = std::as_bytes(std::span(text));
  }
  ASSERT_FALSE(text.empty());
  std::string description;
  const auto other = load(store::write_tables(kTokenizerTables, 7, written_tables(tables, description)));
  EXPECT_THROW(other->encode("said", AddSpecial::kNo), Error);
}

// Intermediate pieces are taken apart by recursion as deep as they are long.
TEST(CompiledTokenizerFile, PiecesLongerThanAnyModelMayHaveAreRefused) {
  const auto tokenizer = test::load_golden_tokenizer("sp_unused");
  const auto with_pieces_of = [&](std::uint32_t length) {
    TokenizerTables tables = tokenizer->compile();
    std::string text, entries;
    for (store::NamedTable& table : tables.tables) {
      if (table.name == "text") {
        text.assign(8000, 'q');
        table.bytes = std::as_bytes(std::span(text));
      } else if (table.name == "entries") {
        entries.assign(reinterpret_cast<const char*>(table.bytes.data()), table.bytes.size());
        for (std::size_t at = 0; at < entries.size(); at += sizeof(Vocabulary::Entry)) {
          Vocabulary::Entry entry;
          std::memcpy(&entry, &entries[at], sizeof entry);
          if (entry.length != Vocabulary::kHole) entry = {0, length};
          std::memcpy(&entries[at], &entry, sizeof entry);
        }
        table.bytes = std::as_bytes(std::span(entries));
      }
    }
    std::string description;
    return load(store::write_tables(kTokenizerTables, 7, written_tables(tables, description)));
  };
  EXPECT_NO_THROW(with_pieces_of(7999));
  EXPECT_THROW(with_pieces_of(8000), Error);
}

TEST(CompiledTokenizerFile, DamageIsFoundWhereverItIs) {
  const std::string good = compiled(*test::load_golden_tokenizer("unigram"));
  const auto sidecar_of = [](const std::string& file) {
    return store::TableSidecar::of_bytes(std::as_bytes(std::span(file)), "t.bin");
  };
  sidecar_of(good).check_all();
  std::mt19937 random(1);
  for (std::size_t at = 0; at < good.size(); at += at < 1024 ? 1 : 1 + random() % 97) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
    EXPECT_THROW(sidecar_of(bad).check_all(), Error) << at;
  }
  for (std::size_t size = 0; size < good.size(); size += size < 1024 ? 1 : 1 + random() % 97)
    EXPECT_THROW(sidecar_of(good.substr(0, size)), Error) << size;
  EXPECT_THROW(sidecar_of(good + '\0'), Error);
}

TEST(CompiledTokenizerFile, AnotherVersionIsNotOurs) {
  const auto tokenizer = test::load_golden_tokenizer("unigram");
  std::string description;
  const std::string file = store::write_tables({"tokenizer", kTokenizerTables.version + 1}, 7,
                                               written_tables(tokenizer->compile(), description));
  std::string layout = compiled(*tokenizer);
  const auto check = [](const std::string& bytes) {
    store::TableSidecar::of_bytes(std::as_bytes(std::span(bytes)), "t").check_kind(kTokenizerTables);
  };
  EXPECT_NO_THROW(check(layout));
  layout[8] = 2;
  for (const std::string& bytes : {file, layout}) EXPECT_THROW(check(bytes), Error);
}

}  // namespace
}  // namespace sluice::tokenizer
