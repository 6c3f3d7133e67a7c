// The template language against jinja2 (tools/oracle/make_chat_goldens.py), its limits, its errors, and the
// origins of bytes.
#include "tokenizer/template/template.h"

#include <gtest/gtest.h>

#include <iostream>
#include <thread>

#include "base/error_of.h"
#include "base/json/json.h"
#include "tokenizer/template/value_json.h"
#include "tokenizer/test_files.h"

namespace sluice::tokenizer {
namespace {

using jinja::Dict;
using jinja::Value;

Value values_of(const std::string& json, Origin origin = Origin::kRequest) {
  return jinja::read_json(json, origin);
}

MarkedText rendered(const std::string& source, const std::string& json = "{}",
                    const TemplateLimits& limits = {}) {
  return Template::parse(source, "t", limits).render(values_of(json).dict());
}
std::string text_of(const std::string& source, const std::string& json = "{}") {
  return rendered(source, json).bytes();
}
std::string refusal(const std::string& source, const TemplateLimits& limits = {}) {
  return testing::error_of([&] { rendered(source, "{}", limits); });
}

// The bytes that are the template's, with "#" for each run of others.
std::string own_text(const MarkedText& text) {
  std::string own;
  text.each_run([&](std::string_view run, Origin origin) {
    own += origin == Origin::kTemplate ? std::string(run) : std::string("#");
  });
  return own;
}

// 2026-11-23 17:20, a Monday.
RenderOptions fixed_time() {
  std::tm now{};
  now.tm_year = 126;
  now.tm_mon = 10;
  now.tm_mday = 23;
  now.tm_hour = 17;
  now.tm_min = 20;
  now.tm_wday = 1;
  now.tm_yday = 326;
  return {.now = now};
}

void compare_with_jinja2(const char* file, std::size_t at_least) {
  const Json golden = Json::parse(test::unpack_zstd(std::string("tests/golden/chat/") + file));
  const std::string variables = golden["variables"].get<std::string>();
  std::size_t texts = 0, errors = 0;
  for (const Json& item : golden["cases"]) {
    const auto source = item["source"].get<std::string>();
    SCOPED_TRACE(source);
    std::optional<std::string> found;
    const std::string error = testing::error_of([&] {
      found = Template::parse(source, "t").render(values_of(variables).dict(), fixed_time()).bytes();
    });
    if (item.contains("out")) {
      ++texts;
      EXPECT_EQ(found.value_or(error), item["out"].get<std::string>());
    } else {
      ++errors;
      EXPECT_FALSE(found) << *found;
    }
  }
  std::cout << texts << " texts and " << errors << " errors of jinja2\n";
  EXPECT_GE(texts, at_least);
  EXPECT_GE(errors, 20u);
}

TEST(Template, RendersAsJinja2) { compare_with_jinja2("language.json.zst", 60); }
TEST(Template, RendersGeneratedTemplatesAsJinja2) { compare_with_jinja2("generated.json.zst", 300); }

TEST(Template, ErrorsNameThePlace) {
  EXPECT_EQ(refusal("a\n  {{ 1 + 'x' }}"),
            "t, line 2, column 8: types int and str do not fit the operator +");
  EXPECT_EQ(refusal("{% include 'x' %}"),
            "t, line 1, column 4: the tag 'include' is not supported in chat templates");
  EXPECT_EQ(refusal("{{ é.x }}"), "t, line 1, column 5: 'é' is undefined");
  EXPECT_EQ(refusal("{{ raise_exception('roles must alternate') }}"),
            "t, line 1, column 19: the template refuses: roles must alternate");
  EXPECT_EQ(refusal("{% if x %}"),
            "t, line 1, column 11: the template ends within a block: expected 'endif'");
  EXPECT_EQ(refusal("{{ 9223372036854775807 + 1 }}"), "t, line 1, column 24: an integer is beyond 64 bits");
  EXPECT_NE(refusal("\xff").find("not UTF-8"), std::string::npos);
}

TEST(Template, ContainersOfTheTemplateCanChange) {
  EXPECT_EQ(
      text_of(
          "{% set l = [1] %}{{ l.append(2) }}{{ l.extend([3]) }}{{ l.insert(0, 9) }}{{ l.pop() }}{{ l }}"),
      "NoneNoneNone3[9, 1, 2]");
  EXPECT_EQ(
      text_of("{% set d = {'a': 1} %}{{ d.update(b=2) }}{{ d.setdefault('c', 3) }}{{ d.pop('a') }}{{ d }}"),
      "None31{'b': 2, 'c': 3}");
  EXPECT_EQ(text_of("{{ ('{\"b\": [1, 2.5]}'|from_json).b }}"), "[1, 2.5]");
  const std::string refused = testing::error_of([] { rendered("{{ l.append(1) }}", R"({"l": []})"); });
  EXPECT_NE(refused.find("only lists and dictionaries that the template has made"), std::string::npos)
      << refused;
}

TEST(Template, ContainersThatHoldThemselvesEnd) {
  EXPECT_NE(refusal("{% set l = [] %}{{ l.append(l) }}{{ l }}").find("nest more than"), std::string::npos);
  EXPECT_EQ(text_of("{% set l = [] %}{% set x = l.append(l) %}{{ l|length }}"), "1");
  EXPECT_EQ(text_of("{% set n = namespace() %}{% set n.n = n %}{{ n.n.n is defined }}"), "True");
  // A chain of lists, each put into the one before.
  EXPECT_EQ(
      text_of("{% set n = namespace(l=[]) %}{% set first = n.l %}{% for i in range(50000) %}"
              "{% set m = [] %}{% set x = n.l.append(m) %}{% set n.l = m %}{% endfor %}{{ first|length }}"),
      "1");
}

TEST(Template, KeepsItsLimits) {
  // Time is the limit on no machine, however slow, unless it is what is tested.
  const auto says = [](const std::string& source, std::string_view wanted,
                       const TemplateLimits& limits = {.seconds = 60}) {
    const std::string error = refusal(source, limits);
    EXPECT_NE(error.find(wanted), std::string::npos) << source.substr(0, 100) << ": " << error;
  };
  says("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "steps");
  says("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "macros call each other more than 64 deep");
  says("{% set x = 'abcdefgh' * 4000000 %}", "a value of more than 16 MiB");
  says("{% set x = 'a' * 9000000 %}{{ x }}{{ x }}", "writes more than 16 MiB");
  says(
      "{% set n = namespace(l=[]) %}{% for i in range(100) %}{% set n.l = n.l + ['a' * 10000000 ~ i] %}{% "
      "endfor %}",
      "values take more than 256 MiB");
  says("{% set n = namespace(l=[]) %}{% for i in range(100) %}{% set n.l = [n.l] %}{% endfor %}",
       "nest more than 64");
  says("{{ range(100001) }}", "more than 100000 items");
  says(std::string(kMiB + 1, 'x'), "too long");
  says("{{ " + std::string(100, '(') + "1" + std::string(100, ')') + " }}", "nest more than 64");
  says(
      "{{ 1" +
          [] {
            std::string chain;
            for (int i = 0; i < 400; ++i) chain += " + 1";
            return chain;
          }() +
          " }}",
      "levels");
  std::string blocks, ends;
  for (int i = 0; i < 80; ++i) blocks += "{% if true %}", ends += "{% endif %}";
  says(blocks + ends, "nest more than 64");
  TemplateLimits hurried;
  hurried.seconds = 0.01;
  hurried.steps = UINT64_MAX;
  says("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "processor time",
       hurried);
  // Doubling comparisons visit exponentially many pairs.
  says(
      "{% set n = namespace(a=[1], b=[1]) %}{% for i in range(40) %}{% set n.a = [n.a, n.a] %}"
      "{% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}",
      "steps");
}

TEST(Template, StringsKnowTheirOrigin) {
  const std::string json = R"({"c": "a<b>c", "d": {"k": "v\n"}, "l": ["x", "y"]})";
  const auto own = [&](const std::string& expression) {
    return own_text(rendered("{{ " + expression + " }}", json));
  };
  EXPECT_EQ(own("'<' ~ c ~ '>'"), "<#>");
  EXPECT_EQ(own("'<' + c[1:3] + '>'"), "<#>");
  EXPECT_EQ(own("c|upper"), "#");
  EXPECT_EQ(own("c.replace('b', 'T')"), "#T#");
  EXPECT_EQ(own("'aTb'.replace('T', c)"), "a#b");
  EXPECT_EQ(own("c.split('<')"), "['#', '#']");
  EXPECT_EQ(own("d|tojson"), "{\"#\": \"#\"}");
  EXPECT_EQ(own("d"), "{'#': '#'}");
  EXPECT_EQ(own("l|join('-')"), "#-#");
  EXPECT_EQ(own("'-'.join(l)"), "#-#");
  EXPECT_EQ(own("'{}={}'.format(c, 't')"), "#=t");
  EXPECT_EQ(own("c|indent(2, true)"), "  #");
  EXPECT_EQ(own("(' ' ~ c ~ ' ')|trim"), "#");
  EXPECT_EQ(own("c|center(9)"), "  #  ");
  EXPECT_EQ(own("c * 2"), "#");
  EXPECT_EQ(own("('t' ~ c)[::-1]"), "#t");
  EXPECT_EQ(own("c|e"), "#");
  EXPECT_EQ(own_text(rendered("{% for x in c %}[{{ x }}]{% endfor %}", json)), "[#][#][#][#][#]");
  EXPECT_EQ(own_text(rendered("{% set x %}t{{ c }}{% endset %}{{ x|title }}", json)), "T#");
  EXPECT_EQ(own_text(rendered("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(c)|lower }}", json)), "<#>");
  EXPECT_EQ(own("('{\"q\": \"' ~ c ~ '\"}')|from_json"), "{'#': '#'}");
}

TEST(Template, CanBeRenderedByManyThreads) {
  const Template shared = Template::parse("{% for m in messages %}{{ m.c|upper }}{% endfor %}", "t");
  const Value variables = values_of(R"({"messages": [{"c": "a"}, {"c": "b"}]})");
  std::vector<std::jthread> threads;
  std::vector<std::string> texts(4);
  for (std::string& text : texts)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) text = shared.render(variables.dict()).bytes();
    });
  threads.clear();
  for (const std::string& text : texts) EXPECT_EQ(text, "AB");
}

}  // namespace
}  // namespace sluice::tokenizer
