// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A fuzzer of allocation: from each seed a program is made and run that creates objects in every way there is (WaysSites), of classes that
 * are made for it: abstract, finalizable, serializable ones, with superclasses of their kind and static initialisers that count, allocate, touch other classes,
 * or throw. Each program has class loaders of its own, so its code is compiled anew, and a class is first met by the interpreter in one, by
 * compiled code in another. What a program prints depends on its seed alone: a JVM that prints something else is wrong.
 *
 *     java Ways.java SEED PROGRAMS [steps]      a line for each program; with `steps` one for each of its steps, too
 */
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.lang.classfile.ClassFile;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.Label;
import java.lang.classfile.TypeKind;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;

public final class Ways {
  /** What every class of a program is. */
  public interface Made extends Cloneable {
    int look();

    Made copy() throws CloneNotSupportedException;
  }

  /** What static initialisers and finalizers tell; shared by all programs. */
  public static final class Told {
    public static int[] order;
    public static boolean[] has; // by number of the class
    static final AtomicLong CONSTRUCTED = new AtomicLong(), FINALIZED = new AtomicLong();

    static synchronized void forget() {
      order = new int[0];
      has = new boolean[CLASSES];
    }

    public static synchronized void initialized(int number) {
      has[number] = true;
      order = Arrays.copyOf(order, order.length + 1);
      order[order.length - 1] = number;
    }

    public static void constructed() {
      CONSTRUCTED.incrementAndGet();
    }

    public static void finalized() {
      FINALIZED.incrementAndGet();
    }
  }

  /** How a class is made. */
  public static final class Plan {
    final int superclass, touched; // -1: none
    final ClassDesc[] fields;
    final boolean isAbstract, isFinalizable, isSerializable, allocatesItself, isThrowing, defines;

    Plan(Random random, List<Plan> before) {
      final int number = before.size();
      superclass = number > 0 && random.nextInt(3) == 0 ? random.nextInt(number) : -1;
      final Plan above = superclass < 0 ? null : before.get(superclass);
      fields = new ClassDesc[random.nextInt(8) == 0 ? random.nextInt(60) : random.nextInt(6)];
      Arrays.setAll(fields, i -> TYPES[random.nextInt(TYPES.length)]);
      isAbstract = random.nextInt(10) == 0;
      // A finalizable object is made by its constructor or as a copy, so that all can be counted.
      final boolean finalizer = random.nextInt(8) == 0, serializable = random.nextBoolean();
      isFinalizable = above == null ? finalizer : above.isFinalizable || finalizer && !above.isSerializable;
      isSerializable = !isFinalizable && (serializable || above != null && above.isSerializable);
      defines = isFinalizable && (above == null || !above.isFinalizable);
      allocatesItself = !isAbstract && random.nextInt(5) == 0;
      isThrowing = random.nextInt(25) == 0;
      touched = number > 0 && random.nextInt(6) == 0 ? random.nextInt(number) : -1;
    }
  }

  private static final int CLASSES = 28, DRIVERS = 4;
  private static final ClassDesc MADE = ClassDesc.of("Ways$Made"), TOLD = ClassDesc.of("Ways$Told");
  private static final MethodTypeDesc VOID = ConstantDescs.MTD_void, INT = MethodTypeDesc.of(ConstantDescs.CD_int);
  private static final MethodTypeDesc OF_INT = MethodTypeDesc.of(ConstantDescs.CD_int, ConstantDescs.CD_int);
  private static final ClassDesc[] TYPES = {ConstantDescs.CD_int, ConstantDescs.CD_long, ConstantDescs.CD_byte, ConstantDescs.CD_short,
    ConstantDescs.CD_char, ConstantDescs.CD_boolean, ConstantDescs.CD_double, ConstantDescs.CD_float, ConstantDescs.CD_Object,
    ConstantDescs.CD_int.arrayType()};

  private static ClassDesc nameOf(int number) {
    return ClassDesc.of("Made" + number);
  }

  private static void toInt(CodeBuilder code, ClassDesc type) {
    switch (type.descriptorString().charAt(0)) {
      case 'J' -> code.l2i();
      case 'F' -> code.f2i();
      case 'D' -> code.d2i();
      case 'L', '[' -> code.instanceOf(ConstantDescs.CD_Object);
      default -> { }
    }
  }

  /** A value of a field that is not zero; on the stack is the object. */
  private static void value(CodeBuilder code, ClassDesc type, int number) {
    switch (type.descriptorString().charAt(0)) {
      case 'J' -> code.loadConstant((long) number);
      case 'F' -> code.loadConstant((float) number);
      case 'D' -> code.loadConstant((double) number);
      case 'Z' -> code.iconst_1();
      case 'L' -> code.loadConstant("o" + number);
      case '[' -> code.loadConstant(number % 9).newarray(TypeKind.INT);
      default -> code.loadConstant(number % 100);
    }
  }

  private static void constructor(CodeBuilder code, Plan plan, ClassDesc self, ClassDesc above) {
    code.aload(0).invokespecial(above, "<init>", VOID);
    for (int i = 0; i < plan.fields.length; i += 2) {
      code.aload(0);
      value(code, plan.fields[i], i + 1);
      code.putfield(self, "f" + i, plan.fields[i]);
    }
    if (plan.defines) {
      code.invokestatic(TOLD, "constructed", VOID);
    }
    code.return_();
  }

  private static void initializer(CodeBuilder code, Plan plan, ClassDesc self, int number) {
    code.loadConstant(number).invokestatic(TOLD, "initialized", MethodTypeDesc.of(ConstantDescs.CD_void, ConstantDescs.CD_int));
    if (plan.allocatesItself) {
      code.new_(self).dup().invokespecial(self, "<init>", VOID).invokevirtual(self, "look", INT).pop();
    }
    if (plan.touched >= 0) {
      code.loadConstant(1).anewarray(nameOf(plan.touched)).pop();
      code.getstatic(nameOf(plan.touched), "number", ConstantDescs.CD_int).pop();
    }
    if (plan.isThrowing) {
      code.aconst_null().athrow();
    } else {
      code.loadConstant(number + 100).putstatic(self, "number", ConstantDescs.CD_int).return_();
    }
  }

  private static void look(CodeBuilder code, Plan plan, ClassDesc self, ClassDesc above) {
    code.getstatic(self, "number", ConstantDescs.CD_int);
    if (plan.superclass >= 0) {
      code.aload(0).invokespecial(above, "look", INT).iadd();
    }
    for (int i = 0; i < plan.fields.length; i++) {
      code.loadConstant(31).imul().aload(0).getfield(self, "f" + i, plan.fields[i]);
      toInt(code, plan.fields[i]);
      code.iadd();
    }
    code.ireturn();
  }

  private static byte[] made(Plan plan, int number) {
    final ClassDesc self = nameOf(number), above = plan.superclass < 0 ? ConstantDescs.CD_Object : nameOf(plan.superclass);
    final int isPublic = ClassFile.ACC_PUBLIC;
    return ClassFile.of().build(self, c -> {
      c.withFlags(isPublic | ClassFile.ACC_SUPER | (plan.isAbstract ? ClassFile.ACC_ABSTRACT : 0)).withSuperclass(above);
      c.withInterfaceSymbols(plan.isSerializable ? List.of(MADE, ClassDesc.of("java.io.Serializable")) : List.of(MADE));
      c.withField("number", ConstantDescs.CD_int, isPublic | ClassFile.ACC_STATIC);
      for (int i = 0; i < plan.fields.length; i++) {
        c.withField("f" + i, plan.fields[i], isPublic);
      }
      c.withMethodBody("<clinit>", VOID, ClassFile.ACC_STATIC, code -> initializer(code, plan, self, number));
      c.withMethodBody("<init>", VOID, isPublic, code -> constructor(code, plan, self, above));
      c.withMethodBody("look", INT, isPublic, code -> look(code, plan, self, above));
      c.withMethodBody("copy", MethodTypeDesc.of(MADE), isPublic, code -> {
        code.aload(0).invokespecial(ConstantDescs.CD_Object, "clone", MethodTypeDesc.of(ConstantDescs.CD_Object));
        if (plan.isFinalizable) {
          code.invokestatic(TOLD, "constructed", VOID);
        }
        code.checkcast(MADE).areturn();
      });
      if (plan.defines) {
        c.withMethodBody("finalize", VOID, isPublic, code -> code.invokestatic(TOLD, "finalized", VOID).return_());
      }
    });
  }

  /** Allocations by the instructions for them, some of them where code does not come while it warms up. */
  private static void drive(CodeBuilder code, Random random) {
    code.iconst_0().istore(1);
    for (int i = 2 + random.nextInt(8); i > 0; i--) {
      final Label next = code.newLabel();
      final ClassDesc type = nameOf(random.nextInt(CLASSES));
      final int every = new int[] {1, 1, 3, 50, 1000}[random.nextInt(5)];
      code.iload(0).loadConstant(every).irem().loadConstant(random.nextInt(every)).if_icmpne(next);
      code.iload(1).loadConstant(31).imul();
      switch (random.nextInt(4)) {
        case 0 -> code.iload(0).loadConstant(100).irem().anewarray(type).arraylength();
        case 1 -> code.loadConstant(random.nextInt(5)).iload(0).loadConstant(9).irem().multianewarray(type.arrayType(2), 2).arraylength();
        default -> code.new_(type).dup().invokespecial(type, "<init>", VOID).invokevirtual(type, "look", INT);
      }
      code.iadd().istore(1).labelBinding(next);
    }
    code.iload(1).ireturn();
  }

  private static Map<String, byte[]> classes(Random random) {
    final Map<String, byte[]> classes = new HashMap<>();
    final List<Plan> plans = new ArrayList<>();
    for (int i = 0; i < CLASSES; i++) {
      plans.add(new Plan(random, plans));
      classes.put("Made" + i, made(plans.get(i), i));
    }
    for (int i = 0; i < DRIVERS; i++) {
      classes.put("Driver" + i, ClassFile.of().build(ClassDesc.of("Driver" + i), c ->
          c.withFlags(ClassFile.ACC_PUBLIC).withMethodBody("run", OF_INT, ClassFile.ACC_PUBLIC | ClassFile.ACC_STATIC, code -> drive(code, random))));
    }
    return classes;
  }

  /** A program's own: what is made for it, and a copy of the classes with allocation sites. */
  private static final class Loader extends ClassLoader {
    final Map<String, byte[]> classes;

    Loader(Map<String, byte[]> classes) {
      super(Ways.class.getClassLoader());
      this.classes = classes;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      synchronized (getClassLoadingLock(name)) {
        final Class<?> found = findLoadedClass(name);
        final byte[] bytes = found != null ? null : classes.containsKey(name) ? classes.get(name) : name.startsWith("WaysSites") ? read(name) : null;
        return found != null ? found : bytes == null ? super.loadClass(name, resolve) : defineClass(name, bytes, 0, bytes.length);
      }
    }

    private byte[] read(String name) throws ClassNotFoundException {
      try (var stream = getResourceAsStream(name + ".class")) {
        return stream.readAllBytes();
      } catch (IOException e) {
        throw new ClassNotFoundException(name, e);
      }
    }
  }

  /** Of objects whose classes are loaded by another loader: to read them may be the first use of a class. */
  private static Map<String, byte[]> serialized(Map<String, byte[]> classes) throws ReflectiveOperationException {
    final Loader loader = new Loader(classes);
    final Map<String, byte[]> found = new HashMap<>();
    for (int i = 0; i < CLASSES; i++) {
      try {
        final var bytes = new ByteArrayOutputStream();
        final Object object = Class.forName("Made" + i, true, loader).getConstructor().newInstance();
        try (var out = new ObjectOutputStream(bytes)) {
          out.writeObject(object);
        }
        found.put("Made" + i, bytes.toByteArray());
      } catch (IOException | InstantiationException | LinkageError e) {
        // not serializable, abstract, or its initialiser throws: the program has no such object
      }
    }
    return found;
  }

  private static void program(long seed, boolean steps) throws ReflectiveOperationException {
    final Map<String, byte[]> classes = classes(new Random(seed));
    Told.forget();
    final Map<String, byte[]> objects = serialized(classes);
    Told.forget();
    final Class<?> sites = Class.forName("WaysSites", true, new Loader(classes));
    System.out.println(sites.getMethod("run", long.class, Map.class, Map.class, boolean.class).invoke(null, seed, classes, objects, steps));
  }

  public static void main(String[] words) throws ReflectiveOperationException, InterruptedException {
    final long first = Long.parseLong(words[0]), count = Long.parseLong(words[1]);
    for (long seed = first; seed < first + count; seed++) {
      program(seed, words.length > 2);
    }
    for (int i = 0; i < 100 && Told.FINALIZED.get() != Told.CONSTRUCTED.get(); i++) {
      System.gc();
      System.runFinalization();
      Thread.sleep(20);
    }
    final long kept = Told.CONSTRUCTED.get() - Told.FINALIZED.get();
    System.out.println(kept == 0 ? "all finalizable objects were finalized" : kept + " finalizable objects were not finalized");
  }
}
