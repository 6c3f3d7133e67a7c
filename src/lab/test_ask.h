// Lines and answers of the lab, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lab/lab.h"

namespace sluice::lab {

inline Json ask(std::string_view name, const Json& line) {
  const Answer answer = answer_line(find_function(name), line.dump(), 1);
  EXPECT_TRUE(answer.good) << line.dump() << " -> " << answer.text;
  return Json::parse(answer.text);
}

inline std::string refusal(std::string_view name, const Json& line) {
  const Answer answer = answer_line(find_function(name), line.dump(), 1);
  EXPECT_FALSE(answer.good) << line.dump() << " -> " << answer.text;
  return answer.good ? "" : std::string(Json::parse(answer.text).at("error"));
}

}  // namespace sluice::lab
