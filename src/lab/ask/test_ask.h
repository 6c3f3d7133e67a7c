// Lines and answers of the lab, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lab/ask/lab.h"

namespace sluice::lab {

inline Json ask(std::string_view name, const Json& line) {
  const Answer answer = answer_line(find_function(name), line.dump(), 1);
  EXPECT_TRUE(answer.good) << line.dump() << " -> " << answer.text;
  return Json::parse(answer.text);
}

// The error for a bad line, which is line 7.
inline std::string refusal(std::string_view name, const Json& line) {
  const Answer answer = answer_line(find_function(name), line.dump(), 7);
  EXPECT_FALSE(answer.good) << line.dump() << " -> " << answer.text;
  const Json json = Json::parse(answer.text);
  EXPECT_EQ(json.size(), 1u);
  return answer.good ? "" : json.at("error").get<std::string>();
}

}  // namespace sluice::lab
