#include "store/pack/journal.h"

#include <gtest/gtest.h>

#include "store/pack/testing.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of testing.h

std::string three_records(const std::string& path) {
  JournalWriter journal(path, 0);
  journal.add("{\"a\":1}");
  journal.commit();
  journal.add("");
  journal.add("{\"b\":2}");
  journal.commit();
  journal.add("never committed");
  return read_file(path);
}

TEST(Journal, KeepsWhatWasCommitted) {
  const TempDirectory temp;
  EXPECT_TRUE(read_journal(temp / "journal").records.empty());
  const std::string text = three_records(temp / "journal");
  const JournalContent content = read_journal(temp / "journal");
  EXPECT_EQ(content.records, (std::vector<std::string>{"{\"a\":1}", "", "{\"b\":2}"}));
  EXPECT_EQ(content.valid_bytes, text.size());
}

TEST(Journal, EndsAtTheFirstTornOrWrongRecord) {
  const TempDirectory temp;
  const std::string text = three_records(temp / "journal");
  std::size_t most = 0;
  for (std::size_t length = 0; length < text.size(); ++length) {
    write_file(temp / "cut", text.substr(0, length));
    const JournalContent content = read_journal(temp / "cut");
    EXPECT_LT(content.records.size(), 3u);
    EXPECT_LE(content.valid_bytes, length);
    EXPECT_GE(content.records.size(), most);
    most = content.records.size();
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string bad = text;
    bad[at] ^= 4;
    write_file(temp / "flipped", bad);
    EXPECT_LT(read_journal(temp / "flipped").records.size(), 3u) << at;
  }
}

TEST(Journal, GoesOnAfterAValidStart) {
  const TempDirectory temp;
  three_records(temp / "journal");
  std::string text = read_file(temp / "journal");
  write_file(temp / "journal", text + "0123456789abcdef {\"torn");
  {
    JournalWriter journal(temp / "journal", read_journal(temp / "journal").valid_bytes);
    journal.add("four");
    journal.commit();
  }
  EXPECT_EQ(read_journal(temp / "journal").records.size(), 4u);
}

}  // namespace
}  // namespace sluice::store
