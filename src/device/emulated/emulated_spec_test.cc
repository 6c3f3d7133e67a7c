#include "device/emulated/emulated_spec.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/error_of.h"

namespace sluice::device {
namespace {

EmulatedSpec parse(std::string_view text) { return parse_emulated_spec(text, "the device"); }

TEST(EmulatedSpec, HasDefaults) {
  const EmulatedSpec spec = parse("emulated");
  EXPECT_EQ(spec.link_bytes_per_s, 2e9);
  EXPECT_EQ(spec.latency_s, 20e-6);
  EXPECT_EQ(spec.compute_bytes_per_s, 60e9);
  EXPECT_FALSE(spec.host_bytes_per_s);
  EXPECT_EQ(spec.threads, 1u);
  EXPECT_EQ(spec.dilation, 1);
  EXPECT_TRUE(spec.full_duplex);
}

TEST(EmulatedSpec, ReadsEachPartInAnyOrder) {
  const EmulatedSpec spec = parse(
      "emulated:dilate=2.5,host=131MB/s,compute=1.31GB/s,latency=1.5ms,link=43.7MB/s,threads=3,duplex=half");
  EXPECT_EQ(spec.link_bytes_per_s, 43.7e6);
  EXPECT_EQ(spec.latency_s, 1.5e-3);
  EXPECT_EQ(spec.compute_bytes_per_s, 1.31e9);
  EXPECT_EQ(spec.host_bytes_per_s, 131e6);
  EXPECT_EQ(spec.threads, 3u);
  EXPECT_EQ(spec.dilation, 2.5);
  EXPECT_FALSE(spec.full_duplex);
}

TEST(EmulatedSpec, ReadsUnits) {
  EXPECT_EQ(parse("emulated:link=1MiB/s").link_bytes_per_s, 1048576.0);
  EXPECT_EQ(parse("emulated:link=4096/s").link_bytes_per_s, 4096.0);
  EXPECT_FALSE(parse("emulated:link=inf").link_bytes_per_s);
  EXPECT_FALSE(parse("emulated:compute=inf").compute_bytes_per_s);
  EXPECT_DOUBLE_EQ(parse("emulated:latency=30ns").latency_s, 30e-9);
  EXPECT_DOUBLE_EQ(parse("emulated:latency=30µs").latency_s, 30e-6);
  EXPECT_EQ(parse("emulated:latency=0us").latency_s, 0);
  EXPECT_EQ(parse("emulated:latency=2s").latency_s, 2);
}

TEST(EmulatedSpec, IsReadAsItIsWritten) {
  for (const char* text : {"emulated", "emulated:link=inf,compute=inf,latency=0us",
                           "emulated:link=43.7MB/s,host=3GB/s,threads=2,dilate=4,duplex=half"}) {
    const EmulatedSpec spec = parse(text), again = parse(to_text(spec));
    EXPECT_EQ(to_text(again), to_text(spec));
    EXPECT_EQ(again.link_bytes_per_s, spec.link_bytes_per_s);
    EXPECT_EQ(again.latency_s, spec.latency_s);
    EXPECT_EQ(again.compute_bytes_per_s, spec.compute_bytes_per_s);
    EXPECT_EQ(again.host_bytes_per_s, spec.host_bytes_per_s);
    EXPECT_EQ(again.threads, spec.threads);
    EXPECT_EQ(again.dilation, spec.dilation);
    EXPECT_EQ(again.full_duplex, spec.full_duplex);
  }
}

TEST(EmulatedSpec, RefusesEverythingElse) {
  for (const char* text : {"",
                           "emulate",
                           "emulated:",
                           "emulatedlink=2GB/s",
                           "emulated:link",
                           "emulated:link=",
                           "emulated:link=2GB",
                           "emulated:link=2Gbit/s",
                           "emulated:link=0/s",
                           "emulated:link=-1GB/s",
                           "emulated:link=nan",
                           "emulated:link=2GB/s,",
                           "emulated:link=2GB/s,link=2GB/s",
                           "emulated:speed=2GB/s",
                           "emulated:=2GB/s",
                           "emulated:latency=20",
                           "emulated:latency=-1us",
                           "emulated:latency=us",
                           "emulated:latency=inf",
                           "emulated:latency=11s",
                           "emulated:compute=999B/s",
                           "emulated:threads=0",
                           "emulated:threads=1.5",
                           "emulated:threads=1025",
                           "emulated:threads=x",
                           "emulated:dilate=0",
                           "emulated:dilate=nan",
                           "emulated:dilate=4x",
                           "emulated:duplex=both"}) {
    SCOPED_TRACE(text);
    try {
      parse(text);
      ADD_FAILURE() << "was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_EQ(error.where(), "the device");
      EXPECT_FALSE(error.expected_text().empty());
      EXPECT_FALSE(error.found_text().empty());
      EXPECT_FALSE(error.fix_text().empty());
    }
  }
  EXPECT_EQ(
      sluice::testing::error_of([] { parse("emulated:link=2Gbit/s"); }),
      "the device: link of the emulated device cannot be read; expected bytes a second with a unit, or inf, "
      "such as 2GB/s, found \"2Gbit/s\"; write link=2GB/s");
}

TEST(EmulatedSpec, ReadsTheRateOfALink) {
  EXPECT_EQ(parse_link_rate("25GB/s", "the link"), 25e9);
  EXPECT_EQ(parse_link_rate("1.5MiB/s", "the link"), 1.5 * 1024 * 1024);
  for (const char* text : {"25GB", "inf", "0B/s", "100B/s", "fast", "", "/s", "-1GB/s"})
    EXPECT_THROW(parse_link_rate(text, "the link"), Error) << text;
}

}  // namespace
}  // namespace sluice::device
