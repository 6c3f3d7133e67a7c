#include "device/choice/device_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_of.h"

namespace sluice::device {
namespace {

using sluice::testing::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

DeviceSpec parse(std::string_view text) { return parse_device_spec(text, "the device"); }

TEST(DeviceSpec, NamesAGpuByItsIndex) {
  EXPECT_EQ(parse("cuda").cuda()->index, 0u);
  EXPECT_EQ(parse("cuda:0").cuda()->index, 0u);
  EXPECT_EQ(parse("cuda:12").cuda()->index, 12u);
  EXPECT_EQ(parse("cuda:1,link=25GB/s").cuda()->link_bytes_per_s, 25e9);
  EXPECT_FALSE(parse("cuda").cuda()->link_bytes_per_s);
  EXPECT_EQ(parse("cuda").emulated(), nullptr);
  EXPECT_EQ(parse("emulated").cuda(), nullptr);
  EXPECT_EQ(parse("emulated:threads=3").emulated()->threads, 3u);
}

TEST(DeviceSpec, IsReadAsItIsWritten) {
  for (const char* const text : {"cuda", "cuda:3", "cuda,link=25GB/s", "cuda:2,link=1.5GiB/s", "emulated",
                                 "emulated:link=inf,compute=inf,latency=0us",
                                 "emulated:link=43.7MB/s,host=3GB/s,threads=2,dilate=4"}) {
    const DeviceSpec spec = parse(text), again = parse(to_text(spec));
    EXPECT_EQ(to_text(again), to_text(spec));
    EXPECT_EQ(again.kind(), spec.kind());
    EXPECT_EQ(again.link_limit(), spec.link_limit());
  }
  EXPECT_EQ(to_text(parse("cuda")), "cuda:0");
  EXPECT_EQ(to_text(parse("cuda:1,link=25GB/s")), "cuda:1,link=25000000000B/s");
}

TEST(DeviceSpec, WhatItIsNotIsRefusedWithWhatItMayBe) {
  for (const char* const text : {"cuda:", "cuda:-1", "cuda:1x", "cuda:256", "cuda:99999999999", "cuda:1:2",
                                 "cuda: 1", "cuda,latency=20us", "cuda:1,link"})
    EXPECT_THAT(error_of([&] { parse(text); }),
                AllOf(HasSubstr("the device"), HasSubstr("cuda:N"), HasSubstr(text)));
  for (const char* const text : {"cuda:1,link=inf", "cuda:1,link=25", "cuda,link=25GB/s,link=2GB/s"})
    EXPECT_THAT(error_of([&] { parse(text); }), HasSubstr("this is no rate of a link"));
  for (const char* const text : {"cudo", "gpu", "cuda2", "", "none", "auto"})
    EXPECT_THAT(error_of([&] { parse(text); }), HasSubstr("auto, none, cuda, cuda:N, emulated"));
  EXPECT_THAT(error_of([&] { parse("cudo"); }), HasSubstr("did you mean cuda"));
  EXPECT_THAT(error_of([&] { parse("emulated:links=2GB/s"); }), HasSubstr("no such property"));
}

TEST(DeviceSpec, AGpuTakesTheTimeThatItTakes) {
  const DeviceSpec gpu = parse("cuda:1");
  EXPECT_FALSE(gpu.is_played());
  EXPECT_FALSE(gpu.is_unpaced());
  EXPECT_EQ(gpu.dilation(), 1);
  EXPECT_EQ(gpu.threads(), 1u);
  EXPECT_TRUE(gpu.full_duplex());
  EXPECT_FALSE(gpu.link_limit());
  EXPECT_FALSE(gpu.host_limit());
  EXPECT_EQ(gpu.least_copy_s(kGiB), 0);
  EXPECT_EQ(gpu.least_compute_s(kGiB), 0);
  EXPECT_EQ(parse("cuda,link=1GB/s").least_copy_s(500'000'000), .5);
}

TEST(DeviceSpec, APlayedDeviceTakesTheTimesOfItsSpecification) {
  const DeviceSpec played =
      parse("emulated:link=2GB/s,latency=1ms,compute=4GB/s,host=1GB/s,threads=3,dilate=2,duplex=half");
  EXPECT_TRUE(played.is_played());
  EXPECT_FALSE(played.is_unpaced());
  EXPECT_EQ(played.dilation(), 2);
  EXPECT_EQ(played.threads(), 3u);
  EXPECT_FALSE(played.full_duplex());
  EXPECT_EQ(played.link_limit(), 1e9);
  EXPECT_EQ(played.host_limit(), .5e9);
  EXPECT_DOUBLE_EQ(played.least_copy_s(1'000'000'000), 1.002);
  EXPECT_DOUBLE_EQ(played.least_compute_s(1'000'000'000), 2);
  EXPECT_DOUBLE_EQ(parse("emulated:compute=4GB/s").least_compute_s(1'000'000'000), .25);
  EXPECT_FALSE(parse("emulated").host_limit());
  EXPECT_TRUE(parse("emulated:link=inf").is_unpaced());
  EXPECT_TRUE(parse("emulated:compute=inf").is_unpaced());
}

TEST(DeviceSpec, ALimitOfTheLinkOnlyTakesAway) {
  for (const char* const text : {"cuda", "emulated:link=inf", "emulated:link=2GB/s"}) {
    DeviceSpec spec = parse(text);
    spec.limit_link(1e9);
    EXPECT_EQ(spec.link_limit(), 1e9) << text;
    spec.limit_link(3e9);
    EXPECT_EQ(spec.link_limit(), 1e9) << text;
  }
  DeviceSpec slow = parse("emulated:link=2GB/s,dilate=4");
  slow.limit_link(1e9);  // before everything is slowed down
  EXPECT_EQ(slow.link_limit(), .25e9);
}

}  // namespace
}  // namespace sluice::device
