// What models of each family write, and what it says.
#include "tokenizer/chat/calls/answer_cases.h"

namespace sluice::tokenizer::test {
namespace {

// The calls and texts that more than one family can write.
const std::string kCity = R"(F get_weather {"city": "QZ"})", kAdd = R"(F add {"a": 1, "b": [2]})";

std::vector<AnswerCase> object_cases() {
  return {
      {"hermes",
       "",
       "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"QZ\"}}\n</tool_call>",
       {kCity}},
      {"hermes",
       "",
       "<think>\nQ?\n</think>\n\nI look. \n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
       "{\"city\": "
       "\"QZ\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": "
       "[2]}}\n</tool_call>\n",
       {"R Q?", "C I look.", kCity, kAdd}},
      {"hermes",
       "",
       "<tool_call>{\"arguments\": {\"city\": \"QZ\"}, \"name\": \"get_weather\"}</tool_call>Z. ",
       {kCity, "C Z. "}},
      // Two objects in one block; a string instead of an object; no arguments; another name for them.
      {"hermes",
       "",
       "<tool_call>{\"name\":\"X\",\"arguments\":{}}\n{\"name\":\"add\",\"arguments\":\"{\\\"a\\\": "
       "\\\"\\u00e9\\\\n\\\"}\"}</tool_call>",
       {"F X {}", "F add {\"a\": \"é\\n\"}"}},
      {"hermes",
       "",
       "<tool_call>{\"name\":\"X\"}</tool_call><tool_call>{\"parameters\": {\"q\": {}}, \"type\": "
       "\"function\", \"name\":\"Z\"}",
       {"F X {}", "F Z {\"q\": {}}"}},
      // What can be no call is text.
      {"hermes", "", "a <tool_call> b\n", {"C a <tool_call> b\n"}},
      {"hermes",
       "",
       "a \n<tool_call>{\"x\": 1}</tool_call> b",
       {"C a \n<tool_call>{\"x\": 1}</tool_call> b"}},
      {"hermes", "", "<tool_call></tool_call>", {"C <tool_call></tool_call>"}},
      {"hermes",
       "",
       "<tool_call>{\"name\": 5, \"arguments\": {}}",
       {"C <tool_call>{\"name\": 5, \"arguments\": {}}"}},
      {"hermes",
       "",
       "<tool_call>{\"name\": \"X\", \"args\": {}}</tool_call>",
       {"F X ", "C , \"args\": {}}</tool_call>"}},
      {"hermes", "", "<tool_call>{\"name\": \"X\", \"arguments\": {\"a\": Q}}", {"F X {\"a\": ", "C Q}}"}},
      {"hermes", "", "<tool_call>{\"name\": \"X\", \"arguments\": {\"a\": \"Q", {"F X {\"a\": \"Q"}},
      // Strings as models write them, too.
      {"hermes",
       "",
       "<tool_call>{\"name\": \"X\", \"arguments\": {\"a\": \"1\n\\d\"}}</tool_call>",
       {"F X {\"a\": \"1\n\\d\"}"}},
      {"hermes", "<think>\n", "<tool_call></think>Q", {"R <tool_call>", "C Q"}},
      // Reasoning alone.
      {"hermes", "", "plain, \n", {"C plain, \n"}},
      {"hermes", "", "<think>\nOne.\n\nTwo.\n</think>\n\nThree. ", {"R One.\n\nTwo.", "C Three. "}},
      {"hermes", "<think>\n\n</think>\n\n", "\nQ", {"C Q"}},
      {"hermes", "<think>", "never ends \n", {"R never ends"}},
      {"hermes", "", "1 <thin", {"C 1 <thin"}},
      {"hermes", "", "<<think>x</think>", {"C <", "R x"}},
      {"hermes", "", "<think> </think>", {}},
      {"hermes", "", "</think>stays", {"C </think>stays"}},
      {"mistral-v3",
       "",
       "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"QZ\"}, \"id\": \"abcdefghi\"}, "
       "{\"name\": \"add\", "
       "\"arguments\": {\"a\": 1, \"b\": [2]}}]",
       {kCity, kAdd}},
      {"mistral-v3", "", "X [TOOL_CALLS] [{\"name\": \"Q\", \"arguments\": {}}] ", {"C X", "F Q {}"}},
      {"mistral-v3", "", "[TOOL_CALLS]{\"name\": \"Q\"}", {"C [TOOL_CALLS]{\"name\": \"Q\"}"}},
      {"mistral-v3", "", "[TOOL_CALLS][{\"name\": \"Q\"}, X]", {"F Q {}", "C , X]"}},
  };
}

std::vector<AnswerCase> argument_cases() {
  const std::string v3 =
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": "
      "\"QZ\"}\n```"
      "<｜tool▁call▁end｜>";
  return {
      {"mistral-v11",
       "",
       "[THINK]Q[/THINK]X[TOOL_CALLS]get_weather[ARGS]{\"city\": "
       "\"QZ\"}[TOOL_CALLS]add[CALL_ID]abcdefghi[ARGS]{\"a\": 1, \"b\": [2]}",
       {"R Q", "C X", kCity, kAdd}},
      {"mistral-v11", "", "[TOOL_CALLS]Q[ARGS]X", {"F Q ", "C X"}},
      {"mistral-v11", "", "[TOOL_CALLS]Q X[ARGS]{}", {"C [TOOL_CALLS]Q X[ARGS]{}"}},
      {"mistral-v11", "", "[TOOL_CALLS]Q[ARGS]17", {"F Q 17"}},
      {"deepseek-v3",
       "<think>\n",
       "Q</think>\n\n" + v3 +
           "\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"a\": 1, \"b\": "
           "[2]}\n```<｜tool▁call▁end｜>"
           "<｜tool▁calls▁end｜>",
       {"R Q", kCity, kAdd}},
      {"deepseek-v3", "", v3 + "Z", {kCity, "C Z"}},
      {"deepseek-v3",
       "",
       "<｜tool▁calls▁begin｜>Q<｜tool▁calls▁end｜>",
       {"C <｜tool▁calls▁begin｜>Q<｜tool▁calls▁end｜>"}},
      {"deepseek-v3.1",
       "<think></think>",
       "X\n\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": "
       "\"QZ\"}<｜tool▁call▁end｜>"
       "<｜tool▁call▁begin｜>add<｜tool▁sep｜>{\"a\": 1, \"b\": [2]}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       {"C X", kCity, kAdd}},
      {"deepseek-v3.1",
       "",
       "<｜tool▁call▁begin｜>Q<｜tool▁sep｜><｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       {"F Q {}"}},
      {"deepseek-v3.1",
       "",
       "<｜tool▁call▁begin｜>Q<｜tool▁sep｜>{\"a\": <｜tool▁call▁end｜>X",
       {"F Q {\"a\": ", "C X"}},
      {"kimi-k2",
       "",
       "<think>Q</"
       "think>X<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_"
       "begin|>"
       "{\"city\": "
       "\"QZ\"}<|tool_call_end|><|tool_call_begin|>functions.add:1<|tool_call_argument_begin|>{\"a\": 1, "
       "\"b\": "
       "[2]}<|tool_call_end|><|tool_calls_section_end|>",
       {"R Q", "C X", kCity, kAdd}},
      {"harmony",
       "<|start|>assistant",
       "<|channel|>analysis<|message|>Q?<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.get_weather "
       "<|constrain|>json<|message|>{\"city\": \"QZ\"}<|call|>",
       {"R Q?", kCity}},
      {"harmony",
       "x<|start|>assistant",
       " to=functions.add<|channel|>commentary json<|message|>{\"a\": 1, \"b\": [2]}<|call|>",
       {kAdd}},
      {"harmony",
       "<|start|>assistant<|channel|>analysis<|message|>",
       "Q<|end|><|start|>assistant<|channel|>commentary<|message|>I "
       "look.<|end|><|start|>assistant<|channel|>final<|message|> Z",
       {"R Q", "C I look.Z"}},
      {"harmony", "", "<|channel|>final<|message|>X<|return|>", {"C X"}},
      {"harmony", "", "<|channel|>Q<|message|>X<|end|> Z", {"C <|channel|>Q<|message|>XZ"}},
      {"harmony", "", "Q alone", {"C Q alone"}},
      {"harmony", "", "<|channel|>comm", {"C <|channel|>comm"}},
      {"harmony", "", "<|channel|>commentary to=python code<|message|>1 + Q", {"F python 1 + Q"}},
  };
}

std::vector<AnswerCase> parameter_cases() {
  const std::string all =
      R"(F get_weather {"city": "12", "days": 2, "exact": true, "near": ["Q"], "note": "5", "x": {"y": null}, "z": "a\n \"b\""})";
  const std::string qwen =
      "<function=get_weather>\n<parameter=city>\n12\n</parameter>\n<parameter=days>\n2\n</"
      "parameter>\n<parameter=exact>\nTrue\n"
      "</parameter>\n<parameter=near>\n[\"Q\"]\n</parameter>\n<parameter=note>\n5\n</"
      "parameter>\n<parameter=x>\n{\"y\": null}\n"
      "</parameter>\n<parameter=z>\na\n \"b\"\n</parameter>\n</function>";
  const std::string glm =
      "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>12</arg_value>\n<arg_key>days</"
      "arg_key>\n<arg_value>2"
      "</arg_value>\n<arg_key>exact</arg_key><arg_value>true</arg_value><arg_key>near</"
      "arg_key><arg_value>[\"Q\"]</arg_value>"
      "<arg_key>note</arg_key><arg_value>5</arg_value><arg_key>x</arg_key><arg_value>{\"y\": "
      "null}</arg_value><arg_key>z</arg_key>"
      "<arg_value>a\n \"b\"</arg_value>\n</tool_call>";
  const std::string dsml =
      "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" "
      "string=\"true\">12"
      "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" "
      "string=\"false\">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
      "<｜DSML｜invoke name=\"add\">\n<｜DSML｜parameter name=\"a\" "
      "string=\"false\">1</｜DSML｜parameter>\n<｜DSML｜parameter "
      "name=\"b\">[2]</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>";
  const std::string minimax =
      "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter "
      "name=\"city\">QZ</parameter>\n</invoke>\n<invoke "
      "name=\"add\">\n<parameter name=\"a\">1</parameter>\n<parameter "
      "name=\"b\">[2]</parameter>\n</invoke>\n</minimax:tool_call>";
  const std::string two = R"(F get_weather {"city": "12", "days": 2})";
  return {
      {"qwen-xml",
       "<think>\n",
       "Q\n</think>\n\nX\n\n<tool_call>\n" + qwen +
           "\n</tool_call>\n<tool_call>\n<function=add>\n</function>\n</tool_call>",
       {"R Q", "C X", all, "F add {}"}},
      {"qwen-xml", "", qwen + "\n</tool_call>\nZ", {all, "C Z"}},
      {"qwen-xml",
       "",
       "<tool_call>\n<function=Q>\n<parameter=a>\nX\n</parameter>\n<parameter=b>\nZ",
       {"F Q {\"a\": \"X\"", "C <parameter=b>\nZ"}},
      {"qwen-xml", "", "if <function= Q", {"C if <function= Q"}},
      {"qwen-xml", "", "<function=f\n{}>", {"C <function=f\n{}>"}},
      {"glm",
       "<think>",
       "Q</think>" + glm + "\n<tool_call>add</tool_call>X",
       {"R Q", all, "F add {}", "C X"}},
      {"glm", "", "<tool_call>Q X</tool_call>", {"C <tool_call>Q X</tool_call>"}},
      {"glm",
       "",
       "<tool_call>add<arg_key>a</arg_key>Q<arg_value>1",
       {"F add ", "C <arg_key>a</arg_key>Q<arg_value>1"}},
      {"deepseek-v3.2", "</think>", "Q\n\n" + dsml, {"C Q", two, kAdd}},
      {"minimax", "<think>\n", "Q\n</think>\n\nX\n" + minimax, {"R Q", "C X", kCity, kAdd}},
  };
}

}  // namespace

const std::vector<AnswerCase>& answer_cases() {
  static const std::vector<AnswerCase> kCases = [] {
    std::vector<AnswerCase> all = object_cases();
    for (const auto& more : {argument_cases(), parameter_cases()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kCases;
}

}  // namespace sluice::tokenizer::test
