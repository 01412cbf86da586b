#!/usr/bin/env python3
"""The Spack recipe: what it says fits this project, and Spack itself takes it where there is one.

Spack is rarely at hand, so a stand-in of its few words executes the recipe: the definitions that it
would give to CMake must be options that CMakeLists.txt has, its dependencies those that the build
looks for."""

import os
import re
import shutil
import subprocess
import sys
import types

import support
from support import Case, environment

RECIPE = support.ROOT / "packaging" / "spack" / "packages" / "headway_mpi" / "package.py"


class Recorder:
    """What the recipe's directives were called with."""

    def __init__(self):
        self.calls = {}

    def directive(self, name):
        def record(*words, **options):
            self.calls.setdefault(name, []).append((words, options))
            return lambda function: function  # some are used as decorators
        return record


class Executable:
    """A command that a recipe calls."""

    def __init__(self, path):
        self.path = path

    def __call__(self, *words):
        subprocess.run([str(self.path), *words], check=True, env=environment(), timeout=120,
                       stdout=subprocess.DEVNULL)


class CMakePackage:
    def define(self, name, value):
        return f"-D{name}={value}"

    def define_from_variant(self, name, variant):
        return f"-D{name}=<{variant}>"


def execute_recipe():
    recorder = Recorder()
    package = types.ModuleType("spack.package")
    for name in ("maintainers", "license", "version", "variant", "depends_on", "conflicts",
                 "generator", "provides", "run_after", "on_package_attributes"):
        setattr(package, name, recorder.directive(name))
    package.Executable = Executable
    package.join_path = os.path.join
    package.working_dir = lambda *_, **__: __import__("contextlib").nullcontext()
    build_system = types.ModuleType("spack_repo.builtin.build_systems.cmake")
    build_system.CMakePackage = CMakePackage
    modules = {"spack.package": package, build_system.__name__: build_system}
    for name in list(modules):
        while "." in name:
            name = name.rpartition(".")[0]
            modules.setdefault(name, types.ModuleType(name))
    saved = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        names = {}
        exec(compile(RECIPE.read_text(), str(RECIPE), "exec"), names)  # pylint: disable=exec-used
    finally:
        for name, module in saved.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    return names["HeadwayMpi"], recorder.calls


class Recipe(Case):
    def test_definitions_exist(self):
        recipe, calls = execute_recipe()
        variants = {words[0] for words, _ in calls["variant"]}
        text = (support.ROOT / "CMakeLists.txt").read_text()
        for definition in recipe().cmake_args():
            name, value = re.fullmatch(r"-D(\w+)=(.*)", definition).groups()
            if value.startswith("<"):
                self.assertIn(value[1:-1], variants, definition)
            if name.startswith("HEADWAY_"):
                self.assertRegex(text, rf"(option|set)\({name} ", definition)

    def test_dependencies_are_those_of_the_build(self):
        _, calls = execute_recipe()
        named = {re.match(r"[\w-]+", words[0])[0] for words, _ in calls["depends_on"]}
        listed = subprocess.run([support.ROOT / "scripts" / "install-deps.sh", "--list"], check=True,
                                capture_output=True, text=True).stdout.split()
        for debian, spack in {"cmake": "cmake", "ninja-build": "ninja", "pkg-config": "pkgconfig",
                              "libhwloc-dev": "hwloc", "libcli11-dev": "cli11", "python3": "python",
                              "libgtest-dev": "googletest",
                              "libbenchmark-dev": "benchmark"}.items():
            self.assertIn(debian, listed)
            self.assertIn(spack, named)
        wanted = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)",
                           (support.ROOT / "CMakeLists.txt").read_text())[1]
        self.assertIn((f"cmake@{wanted}:",), [words for words, _ in calls["depends_on"]])

    def test_it_promises_no_more_than_there_is(self):
        """The virtual package `mpi` means Fortran, windows and files too."""
        _, calls = execute_recipe()
        table = (support.BUILD / "generated" / "settings" / "abi_functions.h").read_text()
        if re.search(r"\{.*, false\}", table):
            self.assertNotIn("provides", calls)

    def test_spack_takes_it(self):
        spack = shutil.which("spack")
        if not spack:
            self.skipTest("spack is not installed here")
        done = subprocess.run([spack, "repo", "add", RECIPE.parents[2]], env=environment(
            SPACK_USER_CONFIG_PATH=self.folder, SPACK_USER_CACHE_PATH=self.folder),
            capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done)


if __name__ == "__main__":
    sys.exit(support.main())
