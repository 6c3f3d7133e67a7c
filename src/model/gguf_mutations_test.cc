// GGUF files from strangers: a small model's file with changed bytes, keys and names is refused with one
// error or described; nothing crashes, and nothing is taken from outside the file.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "base/error.h"
#include "base/files/scratch_directory.h"
#include "model/gguf_fixture.h"
#include "model/golden_models.h"
#include "store/source/gguf_checkpoint.h"

namespace sluice::model {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A file whose bytes behind its header matter to nobody here.
struct Headed {
  std::string header;
  Bytes rest = 0;
  Bytes size() const { return header.size() + rest; }
  void cut_to(Bytes size) {
    rest = size > header.size() ? size - header.size() : 0;
    header.resize(std::min<Bytes>(size, header.size()));
  }
  // The rest is a hole: this test writes 13,600 files.
  void write(const std::string& path) const {
    std::ofstream(path, std::ios::binary) << header;
    std::filesystem::resize_file(path, size());
  }
};

// One change of a file: a byte or a number somewhere in the header, a piece cut out, doubled or moved, an end
// cut off.
void change(Headed& whole, std::mt19937_64& random) {
  std::string& file = whole.header;
  const Bytes header = file.size();
  const auto at = [&](Bytes below) { return static_cast<std::size_t>(random() % std::max<Bytes>(below, 1)); };
  switch (random() % 6) {
    case 0:
      file[at(header)] = static_cast<char>(random());
      return;
    case 1: {  // a number becomes large, or small
      const std::uint64_t number = random() % 2 == 0 ? ~std::uint64_t{0} >> random() % 64 : random() % 5;
      const std::size_t place = at(header - 8);
      file.replace(place, 8, reinterpret_cast<const char*>(&number), 8);
      return;
    }
    case 2:
      file.erase(at(header), 1 + at(16));
      return;
    case 3:
      file.insert(at(header), file.substr(at(header), 1 + at(32)));
      return;
    case 4:
      whole.cut_to(at(whole.size()));
      return;
    default:
      file[at(header)] ^= static_cast<char>(1u << random() % 8);
  }
}

// Every piece of a described model lies in the file, and has the size of its matrix.
void expect_sound(const store::Checkpoint& checkpoint, const Model& model, Bytes file) {
  for (const ExpertPieces& expert : model.experts)
    for (const store::Piece& piece : expert.all()) {
      const store::StoredPiece stored = checkpoint.locate(piece);
      ASSERT_LE(stored.first().offset, file);
      ASSERT_LE(stored.first().length, file - stored.first().offset);
      ASSERT_EQ(stored.shape.elements(), piece.elements);
    }
}

TEST(GgufMutations, AreRefusedOrDescribed) {
  const sluice::testing::ScratchDirectory scratch;
  const std::string path = scratch.path() + "/model.gguf";
  std::size_t described = 0, refused = 0;
  for (const char* const name : {"qwen3_moe_a", "deepseek_v2_b", "mixtral_a", "gpt_oss_a"}) {
    testing::GgufModel(sluice::testing::kGoldenModels + "/" + name).write(path);
    const std::string bytes = read_file(path);
    const Bytes header = store::read_gguf(InputFile::open(path)).data;
    const Headed whole{bytes.substr(0, header), bytes.size() - header};
    for (std::uint64_t seed = 0; seed < 3400; ++seed) {
      SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      Headed file = whole;
      for (std::uint64_t changes = 1 + random() % 3; changes > 0 && file.header.size() > 64; --changes)
        change(file, random);
      file.write(path);
      try {
        const auto checkpoint = store::open_gguf(path);
        const Model model = describe_model(*checkpoint);
        expect_sound(*checkpoint, model, file.size());
        ++described;
      } catch (const Error& error) {
        EXPECT_FALSE(error.expected_text().empty()) << error.what();
        EXPECT_FALSE(error.found_text().empty()) << error.what();
        EXPECT_FALSE(error.fix_text().empty()) << error.what();
        EXPECT_NE(error.where().find(path), std::string::npos) << error.what();
        ++refused;
      }
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(described + refused, 13600u);
  EXPECT_GT(described, 100u);
  EXPECT_GT(refused, 5000u);
}

}  // namespace
}  // namespace sluice::model
