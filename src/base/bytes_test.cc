#include "base/bytes.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace sluice {
namespace {

TEST(ParseSize, BareLettersAndIecNamesAreBinary) {
  EXPECT_EQ(parse_size("8GiB", "--memory"), 8 * kGiB);
  EXPECT_EQ(parse_size("8G", "--memory"), 8 * kGiB);
  EXPECT_EQ(parse_size("8g", "--memory"), 8 * kGiB);
  EXPECT_EQ(parse_size("3KiB", "--memory"), 3 * kKiB);
  EXPECT_EQ(parse_size("2M", "--memory"), 2 * kMiB);
  EXPECT_EQ(parse_size("2T", "--memory"), 2048 * kGiB);
}

TEST(ParseSize, NamesWithBAreDecimal) {
  EXPECT_EQ(parse_size("500MB", "--memory"), 500'000'000u);
  EXPECT_EQ(parse_size("1kB", "--memory"), 1000u);
  EXPECT_EQ(parse_size("2GB", "--memory"), 2'000'000'000u);
  EXPECT_EQ(parse_size("1TB", "--memory"), 1'000'000'000'000u);
}

TEST(ParseSize, PlainNumbersAreBytes) {
  EXPECT_EQ(parse_size("4096", "--memory"), 4096u);
  EXPECT_EQ(parse_size("4096B", "--memory"), 4096u);
  EXPECT_EQ(parse_size("0", "--memory"), 0u);
  EXPECT_EQ(parse_size("18446744073709551615", "--memory"), ~Bytes{0});
}

TEST(ParseSize, FractionsAreExactAndRoundedDown) {
  EXPECT_EQ(parse_size("1.5G", "--memory"), 3 * kGiB / 2);
  EXPECT_EQ(parse_size("0.1KiB", "--memory"), 102u);
  EXPECT_EQ(parse_size("1.25MB", "--memory"), 1'250'000u);
  EXPECT_EQ(parse_size("0.999999999999999999999999GiB", "--memory"), kGiB - 1);
}

TEST(ParseSize, AnythingElseIsAUsageErrorThatNamesTheFlag) {
  for (const char* text : {"",
                           " ",
                           "GiB",
                           "-1",
                           "-1G",
                           "+1G",
                           "1e3",
                           "1.G",
                           ".5G",
                           "1.5",
                           "1.5B",
                           "8 GiB",
                           "8GiB ",
                           "8XB",
                           "0x10",
                           "1,5G",
                           "nan",
                           "inf",
                           "8GiBB",
                           "1..5G",
                           "18446744073709551616",
                           "16777216T",
                           "99999999999999999999999999999999999999999999G"}) {
    try {
      parse_size(text, "--memory");
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage) << text;
      EXPECT_EQ(e.where(), "--memory");
      EXPECT_NE(std::string(e.what()).find(text), std::string::npos);
    }
  }
}

TEST(FormatBytes, HasTwoDecimalsAndABinaryUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(kGiB * 3 / 2), "1.50 GiB");
  EXPECT_EQ(format_bytes(kMiB - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(~Bytes{0}), "16.00 EiB");
}

TEST(Rounding, GoesToTheNextMultiple) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 1000; ++i) {
    const Bytes value = random() >> 8, multiple = 1 + random() % 100'000;
    const Bytes up = round_up(value, multiple), down = round_down(value, multiple);
    EXPECT_EQ(up % multiple, 0u);
    EXPECT_EQ(down % multiple, 0u);
    EXPECT_TRUE(down <= value && value <= up && up - down <= multiple &&
                (up == down) == (value % multiple == 0));
  }
}

}  // namespace
}  // namespace sluice
