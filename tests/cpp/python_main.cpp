// Owns: the main function of every C++ test program: a Python interpreter as the one this was built for (its
// environment's packages included), then GoogleTest. The main thread holds the GIL. Must not: know a layer.
#include <Python.h>
#include <gtest/gtest.h>

namespace {

bool start_python() {
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, GRAPHLIFT_PYTHON);
  if (!PyStatus_Exception(status)) status = PyConfig_SetBytesString(&config, &config.executable, GRAPHLIFT_PYTHON);
  if (!PyStatus_Exception(status)) status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  if (PyStatus_Exception(status)) fprintf(stderr, "Python did not start: %s\n", status.err_msg ? status.err_msg : "?");
  return !PyStatus_Exception(status);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!start_python()) return 2;
  const int failed = RUN_ALL_TESTS();
  if (PyErr_Occurred()) PyErr_Print();
  const int leftover = Py_FinalizeEx();
  return failed != 0 || leftover != 0;
}
