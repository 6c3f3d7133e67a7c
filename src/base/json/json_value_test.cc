// The value against nlohmann-json, whose interface it keeps: whatever is done to both has the same result.
#include "base/json/json_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <stdexcept>

#include "base/json/json.h"

namespace sluice {
namespace {

using Library = nlohmann::json;

struct Both {
  Json ours;
  Library theirs;
};
template <class T>
Both both(const T& value) {
  return {value, value};
}

enum class Texts { kUtf8, kAnyBytes };

std::string random_text(std::mt19937_64& random, Texts texts) {
  static const std::vector<std::string> kPieces = {"a", "Key",  "\"", "\\", "/",      "\n",       "\x01",
                                                   "é", "\x7f", "€",  "😀",  "\u2028", "\xff\xfe", "\xe2\x82"};
  std::string text;
  for (std::uint64_t n = random() % 5; n > 0; --n)
    text += kPieces[random() % (kPieces.size() - (texts == Texts::kUtf8 ? 2 : 0))];
  return text;
}

Both random_number(std::mt19937_64& random) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  switch (random() % 9) {
    case 0:
      return both(static_cast<int>(random() % 7) - 3);
    case 1:
      return both(static_cast<unsigned>(random() % 4));
    case 2:
      return both(static_cast<double>(random() % 7) / 2 - 1);
    case 3:
      return both(static_cast<std::int64_t>(random()));
    case 4:
      return both(random());
    case 5:
      return both(random() % 2 == 0 ? kMin : -(kMin + 1));
    case 6:
      return both(random() % 2 == 0 ? -0.0 : 1e300);
    case 7:
      return both(static_cast<float>(random()) / 3.0f);
    default:
      return both(std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 1900) - 1000));
  }
}

Both random_value(std::mt19937_64& random, int depth, Texts texts) {
  switch (random() % (depth > 0 ? 9 : 6)) {
    case 0:
      return both(nullptr);
    case 1:
      return both(random() % 2 == 0);
    case 2:
      return both(random_text(random, texts));
    case 3:
    case 4:
    case 5:
      return random_number(random);
    case 6:
    case 7: {
      Both array{Json::array(), Library::array()};
      for (std::uint64_t n = random() % 5; n > 0; --n) {
        Both element = random_value(random, depth - 1, texts);
        array.ours.push_back(element.ours);
        array.theirs.push_back(std::move(element.theirs));
      }
      return array;
    }
    default: {
      Both object{Json::object(), Library::object()};
      for (std::uint64_t n = random() % 5; n > 0; --n) {
        const std::string key = random_text(random, texts);
        Both member = random_value(random, depth - 1, texts);
        object.ours[key] = std::move(member.ours);
        object.theirs[key] = std::move(member.theirs);
      }
      return object;
    }
  }
}

TEST(JsonValue, IsWrittenAsTheLibraryWrites) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto [ours, theirs] = random_value(random, 4, i % 2 == 0 ? Texts::kUtf8 : Texts::kAnyBytes);
    const int indent = static_cast<int>(random() % 5) - 1;
    const char fill = random() % 2 == 0 ? ' ' : '\t';
    const bool ascii = random() % 2 == 0;
    EXPECT_EQ(ours.dump(indent, fill, ascii, Json::error_handler_t::replace),
              theirs.dump(indent, fill, ascii, Library::error_handler_t::replace));
    EXPECT_EQ(ours.dump(indent, fill, ascii, Json::error_handler_t::ignore),
              theirs.dump(indent, fill, ascii, Library::error_handler_t::ignore));
    std::string text;
    try {
      text = theirs.dump(indent, fill, ascii);
    } catch (const Library::exception&) {
      EXPECT_ANY_THROW(ours.dump(indent, fill, ascii));
      ++refused;
      continue;
    }
    EXPECT_EQ(ours.dump(indent, fill, ascii), text);
    EXPECT_EQ(parse_json(text, "text"), ours) << text;
    EXPECT_EQ(Json::parse(text).dump(), Library::parse(text).dump());
  }
  EXPECT_GT(refused, 10);
  EXPECT_EQ(Json(NAN).dump(), "null");
  EXPECT_EQ((std::ostringstream() << Json{{"a", 1}}).str(), "{\"a\":1}");
}

// The library takes unsigned numbers above the signed ones for negative ones; ours are compared by value.
bool wraps(const Library& a, const Library& b) {
  const auto large = [](const Library& value) {
    return value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
  };
  return (large(a) && b.is_number_integer() && !b.is_number_unsigned()) ||
         (large(b) && a.is_number_integer() && !a.is_number_unsigned());
}

TEST(JsonValue, ComparesAsTheLibraryDoes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  int equal = 0;
  for (int i = 0; i < 20000; ++i) {
    const Both a = i % 2 == 0 ? random_number(random) : random_value(random, 2, Texts::kUtf8);
    const Both b = i % 3 == 0   ? a
                   : i % 2 == 0 ? random_number(random)
                                : random_value(random, 2, Texts::kUtf8);
    if (wraps(a.theirs, b.theirs)) continue;
    equal += a.theirs == b.theirs ? 1 : 0;
    EXPECT_EQ(a.ours == b.ours, a.theirs == b.theirs) << a.ours << " " << b.ours;
    if (!a.ours.is_number() || !b.ours.is_number()) continue;
    EXPECT_EQ(a.ours < b.ours, a.theirs < b.theirs) << a.ours << " " << b.ours;
    EXPECT_EQ(a.ours >= b.ours, a.theirs >= b.theirs) << a.ours << " " << b.ours;
  }
  EXPECT_GT(equal, 1000);
  EXPECT_NE(Json(-1), Json(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_LT(Json(-1), Json(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_FALSE(Json(NAN) == Json(NAN));
  EXPECT_THROW((void)(Json("a") < Json("b")), std::logic_error);
}

TEST(JsonValue, NumbersAreConvertedAsTheLibraryDoes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const auto [ours, theirs] = random_number(random);
    EXPECT_EQ(ours.is_number_integer(), theirs.is_number_integer());
    EXPECT_EQ(ours.is_number_unsigned(), theirs.is_number_unsigned());
    EXPECT_EQ(ours.is_number_float(), theirs.is_number_float());
    EXPECT_EQ(ours.get<double>(), theirs.get<double>());
    if (ours.is_number_float()) continue;  // as an integer it may be out of range
    EXPECT_EQ(ours.get<std::int64_t>(), theirs.get<std::int64_t>());
    EXPECT_EQ(ours.get<std::uint64_t>(), theirs.get<std::uint64_t>());
    EXPECT_EQ(ours.get<int>(), theirs.get<int>());
  }
  EXPECT_EQ(Json(2.75).get<int>(), 2);
}

// Everything below is written once and done with both kinds of values.
template <class J>
std::vector<J> braced() {
  const J one = 1;
  const std::vector<int> numbers = {1, 2};
  const std::map<std::string, double> figures = {{"x", 0.5}, {"a", 2}};
  return {
      J(),
      J(nullptr),
      J{{"a", {}}},
      J{{}},
      J{{"a", 1}},
      J{{"a", 1}, {"b", {{"c", 2}}}},
      J{{"a", 1}, {"a", 2}},
      J{{"a", 1}, {"b"}},
      J{{"a", 1}, {"b", 2, 3}},
      J{{1, "a"}, {2, "b"}},
      J{{}, {}},
      J{one},
      J(one),
      J{{"a", "b"}},
      J{"a", "b"},
      J{{{"a", 1}}},
      J{{"a", {1}}},
      J{{"a", {1, 2}}},
      J{{"k", one}, {"l", J()}, {"m", J::array()}, {"n", J::object()}},
      J{{"v", numbers}, {"f", figures}, {"p", std::pair{1, "z"}}, {"q", std::pair{"y", "z"}}},
      J{numbers},
      J(numbers),
      J(figures),
      J(std::vector<std::vector<std::string>>{{"a"}, {}}),
      J(std::vector<bool>{true, false}),
      J(std::map<std::string, std::vector<int>>{{"a", {1}}}),
      J::array({1}),
      J::array({one}),
      J::array({{"a", 1}}),
      J::array(),
      J::object({{"a", 1}}),
      J::object(),
      J(std::string("text")),
      J(std::string_view("view")),
      J("literal"),
      J(true),
      J('c'),
      J(1.0f),
      J(static_cast<std::uint8_t>(200)),
  };
}

TEST(JsonValue, BracesMeanTheSame) {
  const std::vector<Json> ours = braced<Json>();
  const std::vector<Library> theirs = braced<Library>();
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_EQ(ours[i].dump(), theirs[i].dump()) << i;
  const Json converted = {{"a", 1}};
  EXPECT_EQ(converted, (Json{{"a", 1}}));
  EXPECT_THROW(Json::object({1}), std::logic_error);
  EXPECT_THROW(Json::object({{1, 2}}), std::logic_error);
}

template <class J>
std::string changed() {
  std::string log;
  const auto note = [&log](const auto& value) { log += J(value).dump() + "\n"; };
  J value;
  note(value.size());
  note(value.empty());
  value["list"][2] = 3;
  value["list"].push_back("four");
  value["list"].push_back({{"five", 5}});
  value["list"].emplace_back()["six"] = 6;
  value["list"].emplace_back(std::string("seven"));
  value["other"] = {{"a", 1}, {"b", 2}};
  note(value);
  value["other"].update({{"b", 3}, {"c", 4}});
  value["filled"].update(value["other"]);
  note(value["other"].erase("a"));
  note(value["other"].erase("a"));
  value["list"].erase(0);
  note(value);
  note(value["list"].front());
  note(value["list"].back());
  note(value.at("list").at(1));
  note(value.contains("list"));
  note(value.contains("none"));
  note(J(1).contains("none"));
  note(value["other"].value("c", 7));
  note(value["other"].value("d", 7));
  note(value.find("none") == value.end());
  const J five = 5;
  note(*value.find("other"));
  note(value.find("other").key());
  note(five.find("none") == five.end());
  for (const auto& [key, member] : value["other"].items()) note(key + member.dump());
  for (const J& element : value["list"]) note(element);
  for (J& member : value["other"]) member = member.template get<int>() + 1;
  for (const J& member : value["other"]) note(member);
  for (const J& nothing : J()) note(nothing);
  for (const J& scalar : J("scalar")) note(scalar);
  for (const J& nothing : J::array()) note(nothing);
  for (const J& nothing : J::object()) note(nothing);
  for (const auto& kind : {J(), J(true), J(1), J(1u), J(1.5), J("a"), J::array({1, 2}), J{{"a", 1}}}) {
    note(std::string(kind.type_name()));
    note(kind.size());
    note(kind.empty());
    note(std::vector<bool>{kind.is_null(), kind.is_boolean(), kind.is_number(), kind.is_number_integer(),
                           kind.is_number_unsigned(), kind.is_number_float(), kind.is_string(),
                           kind.is_array(), kind.is_object(), kind.is_structured()});
  }
  note(J{1, 2.5, 3u}.template get<std::vector<double>>());
  note(J{"a", "b"}.template get<std::vector<std::string>>());
  note(J{{"a", 1}}.template get<std::map<std::string, int>>());
  note(J("a").template get<std::string>());
  note(J("a").template get_ref<const std::string&>());
  const J copy = value;
  J moved = std::move(value);
  note(moved == copy);
  note(value);  // NOLINT(bugprone-use-after-move): moved from, null
  moved = moved.at("other");
  note(moved);
  note(copy);
  moved.swap(value);
  note(moved);
  for (const auto& wrong : std::vector<std::function<void(J&)>>{
           [](J& v) { v.at("none"); }, [](J& v) { v.at("list").at(99); }, [](J& v) { v.at(0); },
           [](J& v) { v["list"]["key"] = 1; }, [](J& v) { v[0] = 1; }, [](J& v) { v.push_back(1); },
           [](J& v) { v.at("list").template get<std::string>(); }, [](J& v) { v.template get<bool>(); },
           [](J& v) { v.template get<double>(); }, [](J& v) { v.template get<std::vector<int>>(); },
           [](J& v) { v.at("list").at(0).template get_ref<const typename J::array_t&>(); },
           [](J& v) { v.update(J(1)); }, [](J& v) { v.at("list").update(v); },
           [](J& v) { v.at("list").erase(99); }, [](J& v) { v.at("list").erase("key"); },
           [](J& v) { v.at("list").value("key", 1); },
           [](J& v) { v.template get_ref<const std::string&>(); }}) {
    J victim = copy;
    try {
      wrong(victim);
      note("accepted");
    } catch (const std::exception&) {
      note("refused");
    }
  }
  return log;
}

TEST(JsonValue, ChangesAndAnswersAsTheLibraryDoes) { EXPECT_EQ(changed<Json>(), changed<Library>()); }

TEST(JsonValue, WrongUseIsToldByName) {
  const Json value = {{"a", 1}}, nothing = Json::array();
  const auto message = [](const auto& function) -> std::string {
    try {
      function();
    } catch (const std::logic_error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message([&] { (void)value.at("b"); }), "JSON: the member \"b\" is missing");
  EXPECT_EQ(message([&] { (void)value["b"]; }), "JSON: the member \"b\" is missing");
  EXPECT_EQ(message([&] { (void)nothing[0]; }), "JSON: element 0 is missing");
  EXPECT_EQ(message([&] { (void)nothing.back(); }), "JSON: element 0 is missing");
  EXPECT_EQ(message([&] { (void)value.get<std::string>(); }), "JSON: type is object, not string");
  EXPECT_EQ(message([&] { (void)Json("1").get<int>(); }), "JSON: type is string, not number");
}

}  // namespace
}  // namespace sluice
