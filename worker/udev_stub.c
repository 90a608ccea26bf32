// SPDX-License-Identifier: Apache-2.0
// Why: Debian's libhwloc.a asks udev for block device names, and there is no static libudev.
// With no udev context hwloc leaves those names out, which we never read.

struct udev;
struct udev_device;

struct udev *udev_new(void);
struct udev *udev_unref(struct udev *udev);
struct udev_device *udev_device_new_from_subsystem_sysname(struct udev *udev, const char *subsystem,
                                                           const char *sysname);
struct udev_device *udev_device_unref(struct udev_device *device);
const char *udev_device_get_property_value(struct udev_device *device, const char *key);

struct udev *udev_new(void)
{
    return 0;
}

struct udev *udev_unref(struct udev *udev)
{
    (void)udev;
    return 0;
}

struct udev_device *udev_device_new_from_subsystem_sysname(struct udev *udev, const char *subsystem,
                                                           const char *sysname)
{
    (void)udev, (void)subsystem, (void)sysname;
    return 0;
}

struct udev_device *udev_device_unref(struct udev_device *device)
{
    (void)device;
    return 0;
}

const char *udev_device_get_property_value(struct udev_device *device, const char *key)
{
    (void)device, (void)key;
    return 0;
}
